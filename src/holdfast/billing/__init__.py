"""Who takes the money. Holdfast only asks, and believes nothing but what the provider confirms."""
