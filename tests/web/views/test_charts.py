"""A map's tiles are as large as their values and lie inside, none upon another; shades tell small values apart."""

from __future__ import annotations

from itertools import combinations

import pytest

from app.web.views.charts import MAP_HEIGHT, MAP_WIDTH, SHADES, shade, tiles


@pytest.mark.parametrize("values", [[1], [5, 3, 2], [279, 106, 105, 93, 9, 9, 8, 1]])
def test_tiles_fill_the_map_by_value_and_lie_apart(values: list[int]) -> None:
    found = tiles([f"family {n}" for n in values], values)
    areas = [tile.width * tile.height for tile in found]

    assert areas == pytest.approx([n * MAP_WIDTH * MAP_HEIGHT / sum(values) for n in values], rel=0.02)
    assert all(0 <= tile.x <= MAP_WIDTH and tile.x + tile.width <= MAP_WIDTH + 0.2 for tile in found)
    for one, two in combinations(found, 2):
        wide = min(one.x + one.width, two.x + two.width) - max(one.x, two.x)
        high = min(one.y + one.height, two.y + two.height) - max(one.y, two.y)
        assert wide <= 0.2 or high <= 0.2


def test_a_name_is_cut_to_its_tile() -> None:
    (first, *_, last) = tiles(["a name that is rather long for a tile"] * 40, [1] * 40)

    assert first.label
    assert last.label
    assert all(len(line) * 6 <= tile.width for tile in (first, last) for line in tile.label)
    assert all(len(tile.label) * 15 <= tile.height for tile in (first, last))


def test_shades_rise_from_none_to_the_most() -> None:
    assert [shade(value, 100) for value in (0, 1, 30, 100)] == [0, 1, 3, SHADES]
