"""Pages, charts and pictures, in one design."""
