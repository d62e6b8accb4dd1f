"""Jobs that keep a lake healthy. Each looks first and acts after."""
