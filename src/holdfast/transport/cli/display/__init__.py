"""How answers look: tables that fit the terminal, relative times, colours of states, chosen fields, a live screen."""
