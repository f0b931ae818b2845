"""The programs of this user that reach a server: which server, key and account each of them would use."""
