"""The one way in: every door calls this. Authorise, then act."""
