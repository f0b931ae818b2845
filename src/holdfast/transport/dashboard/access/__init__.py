"""Who may use the dashboard: sign-in, sign-in links, cookies, form checks and permissions."""
