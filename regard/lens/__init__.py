"""What a model computed: traces of a text, attention, cells that follow a feature. Nothing here draws."""
