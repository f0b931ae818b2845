"""Tables of the command line verbs: names, arguments and help."""
