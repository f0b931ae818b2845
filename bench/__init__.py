"""How fast it is, measured as ratios within one run: the machine is noisy, ratios are not."""
