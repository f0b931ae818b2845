"""OctoStore's own verbs: `lock` and `election` with their events, exit statuses and deadlines."""
