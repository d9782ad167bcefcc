"""Labels, sentences and worked arithmetic, with their templates."""
