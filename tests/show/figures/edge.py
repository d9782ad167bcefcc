"""Whether a drawing has ink at its edge, which is how a label that is cut shows."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchbook.show import theme


def inked_edges(figure: Figure) -> list[str]:
    """Name the edges of a figure at which a pixel has another colour than the paper."""
    with theme.figure_style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    edges = {"left": pixels[:, 0], "right": pixels[:, -1], "top": pixels[0], "bottom": pixels[-1]}
    return [name for name, line in edges.items() if np.abs(line - line[0]).max() > 8]
