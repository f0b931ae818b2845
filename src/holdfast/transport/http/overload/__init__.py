"""What keeps one caller from taking the server away from the others: limits of work, bytes and requests in flight."""
