"""Images of which least_squares.py makes scans: functions of a grid that is four times finer than the slice, their projections
averaged over bins, and the slice averaged over pixels."""

import numpy as np

FINE = 4  # points of the grid along a pixel


class Grid:
    """Coordinates of the fine grid, from -1 to 1 across the slice; `pixel` is the side of a pixel."""

    def __init__(self, size):
        self.size, self.side, self.pixel = size, size * FINE, 2 / size
        line = (np.arange(self.side) - (self.side - 1) / 2) * 2 / self.side
        self.x, self.y = np.meshgrid(line, line)
        self.radius = np.hypot(self.x, self.y)

    def body(self, value=1.0, radius=0.85):
        return np.where(self.radius < radius, value, 0.0)

    def correlated(self, random, pixels):
        """Noise with a Gaussian correlation of that many pixels, of mean 0 and deviation 1."""
        frequency = np.fft.fftfreq(self.side)
        window = np.exp(-2 * (np.pi * pixels * FINE) ** 2 * (frequency[:, None] ** 2 + frequency[: self.side // 2 + 1] ** 2))
        spectrum = np.fft.rfft2(random.standard_normal((self.side, self.side))) * window
        noise = np.fft.irfft2(spectrum, (self.side, self.side))
        return noise / noise.std()

    def turned(self, centre, angle):
        """Coordinates along and across a direction, from a centre."""
        x, y = self.x - centre[0], self.y - centre[1]
        return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def place(random, within):
    radius, turn = within * np.sqrt(random.random()), 2 * np.pi * random.random()
    return radius * np.cos(turn), radius * np.sin(turn)


def bars(grid, random):
    """A resolution target: groups of three bars, one to eight pixels wide, as far apart as they are wide."""
    image = grid.body(0.3)
    widths = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8]
    for number, width in enumerate(widths):
        for turn, radius, factor in ((0, 0.62, 1), (np.pi / 2, 0.28, 0.5)):
            angle = 2 * np.pi * number / len(widths) + turn / 5
            along, across = grid.turned((radius * np.cos(angle), radius * np.sin(angle)), turn)
            width_here = max(width * factor, 1) * grid.pixel
            bar = (np.abs(along) < 2.5 * width_here) & (np.floor(across / width_here + 0.5) % 2 == 0)
            image[bar & (np.abs(across) < 2.5 * width_here)] = 1.0
    return image


def polygons(grid, random):
    """Overlapping convex polygons, whose values add up."""
    image = grid.body(0.5)
    for _ in range(25):
        corners = np.sort(random.random(random.integers(3, 8))) * 2 * np.pi
        centre, radius = place(random, 0.6), random.uniform(0.08, 0.35)
        x, y = centre[0] + radius * np.cos(corners), centre[1] + radius * np.sin(corners)
        inside = np.ones_like(image, dtype=bool)
        for a, b in zip(range(len(corners)), np.roll(range(len(corners)), -1)):
            inside &= (x[b] - x[a]) * (grid.y - y[a]) - (y[b] - y[a]) * (grid.x - x[a]) > 0
        image[inside] += random.uniform(-0.25, 0.5)
    return np.clip(image, 0, None) * (grid.radius < 0.88)


def fibres(grid, random):
    """Fibres of three to six pixels, cut across and at a slant, in a matrix."""
    image = grid.body(0.35)
    for _ in range(500):
        along, across = grid.turned(place(random, 0.8), np.pi * random.random())
        radius = random.uniform(1.5, 3) * grid.pixel
        image[(along / random.choice([1, 1, 4])) ** 2 + across**2 < radius**2] = 1.0
    return image


def shells(grid, random):
    """Elliptical shells, from ten pixels to one, of two materials and gaps."""
    along, across = grid.turned((0.03, -0.05), 0.4)
    radius = np.hypot(along, across / 0.85) / grid.pixel * 256 / grid.size
    image = np.zeros_like(radius)
    outer = 105.0
    for number, width in enumerate([10, 4, 3, 8, 2, 2, 6, 1.5, 1.5, 5, 1, 1, 10, 2, 8, 4]):
        image[radius < outer] = [0.9, 0.0, 0.5, 0.1][number % 4]
        outer -= width
    image[radius < outer] = 0.7
    return image


def porous(grid, random):
    """Pores and grains of a mineral: noise above and below thresholds."""
    solid, mineral = grid.correlated(random, 3), grid.correlated(random, 5)
    image = np.where(solid > -0.3, 0.7, 0.0)
    image[(mineral > 1.3) & (solid > -0.3)] = 1.0
    return image * (grid.radius < 0.85)


def rectangles(grid, random):
    """Rectangles, each of which hides those below."""
    image = grid.body(0.3)
    for _ in range(20):
        along, across = grid.turned(place(random, 0.6), np.pi * random.random())
        width, height = random.uniform(0.03, 0.25, 2)
        image[(np.abs(along) < width) & (np.abs(across) < height)] = random.choice([0.0, 0.5, 0.8, 1.0])
    return image * (grid.radius < 0.88)


def grains(grid, random):
    """Cells around random points, of values that differ by at most a third."""
    nearest, image = np.full_like(grid.x, np.inf), np.zeros_like(grid.x)
    for _ in range(150):
        x, y = place(random, 0.9)
        distance = (grid.x - x) ** 2 + (grid.y - y) ** 2
        closer = distance < nearest
        image[closer], nearest = random.uniform(0.75, 1.0), np.minimum(nearest, distance)
    return image * (grid.radius < 0.85)


def slopes(grid, random):
    """A density that changes slowly, with round holes."""
    image = grid.body() * (1 - 0.5 * grid.radius**2 + 0.15 * np.sin(5 * grid.x + 2 * grid.y))
    for _ in range(15):
        along, across = grid.turned(place(random, 0.7), 0)
        image[np.hypot(along, across) < random.uniform(0.02, 0.12)] = 0.0
    return image


def texture(grid, random):
    """A body with details of two pixels of a seventh of its value, and a few inclusions."""
    image = grid.body() * (1 + 0.15 * grid.correlated(random, 1))
    for _ in range(8):
        along, across = grid.turned(place(random, 0.6), 0)
        image[np.hypot(along, across) < random.uniform(0.03, 0.1)] = random.choice([0.0, 1.8])
    return np.clip(image, 0, None)


def projected(image, angles, bins):
    """Projections of an image on the fine grid, averaged over bins, with the axis in the middle."""
    y, x = np.nonzero(image)
    values = image[y, x]
    middle = (len(image) - 1) / 2
    x, y = x - middle, y - middle
    sinogram = np.zeros((len(angles), bins), np.float32)
    for row, angle in zip(sinogram, angles):
        # in parts of a bin; that of the axis is between the two in the middle
        position = bins * FINE / 2 - 0.5 + x * np.cos(angle) - y * np.sin(angle)
        below = np.floor(position).astype(np.int32)
        share = position - below
        parts = np.bincount(below, values * (1 - share), bins * FINE + 1)
        parts += np.bincount(below + 1, values * share, bins * FINE + 1)
        row[:] = parts[:-1].reshape(bins, FINE).sum(1) / FINE**2
    return sinogram


def averaged(image):
    side = len(image) // FINE
    return image.reshape(side, FINE, side, FINE).mean((1, 3)).astype(np.float32)
