"""Who may do what: principals and the one decision every call asks for."""
