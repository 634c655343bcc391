"""The picture shows what is in the scene: who hides whom, where light falls, what files hold."""

from __future__ import annotations

import dataclasses
import io
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from softrig.errors import EmptyMeshError, IndexRangeError, InputError, NotFiniteError
from softrig.files import write_bytes
from softrig.io.images import animated_png, write_gif, write_png
from softrig.render import (
    Background,
    Camera,
    Ground,
    Light,
    Mesh,
    Series,
    beneath,
    colour_bar,
    diverging,
    label,
    lightened,
    line_plot,
    luminance,
    render,
    sequential,
    strip,
)
from softrig.render.axes import fitted_axis, legend_places
from softrig.render.colour import linear
from softrig.render.normals import corner_normals

SIZE = (160, 120)
BLACK = Background((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
AHEAD = Camera((0.0, 0.0, 5.0), (0.0, 0.0, 0.0))
FRONTAL = Light((0.0, 0.0, 1.0))


def sphere(rings: int = 48, sectors: int = 96) -> tuple[np.ndarray, np.ndarray]:
    polar = np.linspace(0.0, np.pi, rings + 1)[:, None]
    around = np.linspace(0.0, 2 * np.pi, sectors, endpoint=False)
    ring = np.stack(
        [np.sin(polar) * np.cos(around), np.cos(polar) + 0 * around, np.sin(polar) * np.sin(around)], axis=-1
    )
    i, j = (index.ravel() for index in np.meshgrid(np.arange(rings), np.arange(sectors), indexing="ij"))
    a, b = i * sectors + j, i * sectors + (j + 1) % sectors
    triangles = np.concatenate([np.stack([a, a + sectors, b], 1), np.stack([b, a + sectors, b + sectors], 1)])
    return ring.reshape(-1, 3), triangles


def square(half: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])


def cube(half: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    corners = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return corners, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def brightness(image: np.ndarray) -> np.ndarray:
    return luminance(image / 255.0)


@pytest.mark.parametrize("order", [1, -1])
def test_nearer_triangle_hides_the_farther(order: int) -> None:
    near = Mesh(*square(0.5, 1.0), (0.9, 0.1, 0.1))
    far = Mesh(*square(1.2, -1.0), (0.1, 0.1, 0.9))
    image = render([near, far][::order], AHEAD, SIZE, light=FRONTAL).astype(int)
    red, _, blue = image[60, 80]
    assert red > 2 * blue
    red, _, blue = image[60, 48]
    assert blue > 2 * red


def test_interpenetrating_triangles_meet_where_they_cross() -> None:
    slanted, triangles = square(0.8, 0.0)
    slanted[:, 2] = slanted[:, 0]
    image = render([Mesh(*square(0.8, 0.0), (0.9, 0.1, 0.1)), Mesh(slanted, triangles, (0.1, 0.1, 0.9))], AHEAD, SIZE)
    assert image[60, 70, 0] > image[60, 70, 2]
    assert image[60, 90, 2] > image[60, 90, 0]


def test_silhouette_of_a_sphere_has_the_projected_area() -> None:
    distance, (width, height) = 4.0, (320, 240)
    camera = Camera((0.0, 0.0, distance), (0.0, 0.0, 0.0))
    image = render(Mesh(*sphere(), (1.0, 1.0, 1.0)), camera, (width, height), background=BLACK, light=FRONTAL)
    covered = (image.max(axis=2) > 3).sum()
    radius = 1.0 / math.sqrt(distance**2 - 1.0) * (height / 2) / math.tan(camera.field_of_view / 2)
    assert covered == pytest.approx(math.pi * radius**2, rel=0.02)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("crease_angle", [0.0, 0.7])
def test_light_from_the_left_brightens_the_left(flipped: bool, crease_angle: float) -> None:
    vertices, triangles = sphere()
    mesh = Mesh(vertices, triangles[:, ::-1] if flipped else triangles, crease_angle=crease_angle)
    image = brightness(render(mesh, AHEAD, SIZE, light=Light((-1.0, 0.0, 0.6))))
    assert image[60, 60] > 2.0 * image[60, 100]


@pytest.mark.parametrize("up", [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
def test_shadow_darkens_the_ground_away_from_the_light(up: tuple[float, float, float]) -> None:
    to_world = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]] if up[1] else [[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    # Rows of `to_world.T` are where x, y and z of a y-up scene point.
    mesh = Mesh(cube()[0] @ to_world.T, cube()[1], gloss=0.0)
    camera = Camera(to_world @ [0.0, 6.0, 6.0], to_world @ [0.0, -0.5, 0.0], up)
    options = {"light": Light(to_world @ [-1.0, 1.0, 0.0]), "background": BLACK}
    image = brightness(render(mesh, camera, SIZE, ground=Ground(-0.5), **options))
    open_ground, shadow = image[64, 50], image[64, 104]
    assert shadow < 0.5 * open_ground
    assert shadow > 0.02
    nothing = brightness(render(mesh, camera, SIZE, **options))
    assert nothing[64, 50] == 0.0


@pytest.mark.parametrize("up", [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.6, 0.8)])
def test_shadows_fall_on_the_ground_along_the_light(up: tuple[float, float, float]) -> None:
    light = Light((0.4, up[1], up[2]))
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 5, 3))
    fallen = light.shadow(points, -1.5, up)
    np.testing.assert_allclose(fallen @ np.asarray(up), -1.5)
    np.testing.assert_allclose(np.cross(points - fallen, light.direction), 0.0, atol=1e-12)
    assert ((points - fallen) @ np.asarray(light.direction) > 0.0).all(), "away from the light"
    with pytest.raises(InputError, match="does not shine down"):
        Light(-np.asarray(up)).shadow(points, -1.5, up)


def test_lit_plane_has_no_acne_and_penumbra_is_gradual() -> None:
    camera = Camera((0.0, 4.0, 8.0), (0.0, 0.0, 0.0))
    floor, triangles = square(30.0, 0.0)
    floor = np.ascontiguousarray(floor[:, [0, 2, 1]])
    light = Light((-1.0, 0.5, 0.0))
    plain = render(Mesh(floor, triangles, gloss=0.0), camera, SIZE, light=light)[60:].astype(int)
    assert np.ptp(plain, axis=(0, 1)).max() <= 3
    bar = Mesh(cube()[0] * [0.2, 0.4, 6.0] + [-3.0, 2.0, 0.0], cube()[1])
    row = brightness(render([Mesh(floor, triangles, gloss=0.0), bar], camera, SIZE, light=light))[70]
    between = (row > row.min() + 0.1 * np.ptp(row)) & (row < row.min() + 0.9 * np.ptp(row))
    assert between.sum() >= 4


def test_contact_with_a_wall_is_darker_than_the_open_wall() -> None:
    wall = Mesh(*square(3.0, -0.5), gloss=0.0)
    box = Mesh(cube()[0] * [1.0, 1.0, 0.1] + [0.0, 0.0, -0.45], cube()[1], (0.2, 0.2, 0.2))
    image = brightness(render([wall, box], AHEAD, SIZE, light=FRONTAL))
    edge = np.argmax(np.abs(np.diff(image[60, 80:]))) + 80
    assert image[60, edge + 2] < 0.93 * image[60, 150]


def test_triangles_behind_the_eye_do_not_show() -> None:
    crossing = np.array([[-1.0, -0.5, 20.0], [1.0, -0.5, 20.0], [0.0, -0.5, -20.0]])
    image = render(Mesh(crossing, np.array([[0, 1, 2]])), AHEAD, SIZE, background=BLACK)
    assert image[:60].max() == 0
    assert image[-1, 80].min() > 0


def test_wire_draws_dark_edges() -> None:
    plain, wired = (
        brightness(render(Mesh(*square(1.0, 0.0), wire=wire), AHEAD, SIZE, light=FRONTAL)) for wire in (False, True)
    )
    diagonal = wired[60, 80] / plain[60, 80]
    assert diagonal < 0.8
    assert wired[50, 60] == pytest.approx(plain[50, 60], rel=0.02)


def test_pictures_are_reproducible() -> None:
    mesh = Mesh(*sphere(12, 24))
    first, second = (render(mesh, AHEAD, SIZE, ground=Ground(-1.0)) for _ in range(2))
    assert first.shape == (120, 160, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, second)


def test_crease_angle_splits_a_cube_and_smooths_a_sphere() -> None:
    vertices, triangles = cube()
    sharp = corner_normals(vertices, triangles, 0.7)
    assert np.allclose(np.abs(sharp).max(axis=2), 1.0)
    assert np.allclose(np.abs(corner_normals(vertices, triangles, 3.0)).max(axis=2), 1 / math.sqrt(3), atol=0.25)
    vertices, triangles = sphere()
    smooth = corner_normals(vertices, triangles, 0.7)
    areas = np.linalg.norm(
        np.cross(
            vertices[triangles[:, 1]] - vertices[triangles[:, 0]],
            vertices[triangles[:, 2]] - vertices[triangles[:, 0]],
        ),
        axis=1,
    )
    solid = areas > 1e-9
    cosine = np.abs((smooth * vertices[triangles]).sum(axis=2))[solid]
    assert cosine.min() > 0.999


@pytest.mark.parametrize("direction", [(0.6, 0.35, 1.0), (-1.0, 0.1, 0.2), (0.2, 3.0, -1.0)])
def test_framing_has_everything_inside_and_touches_a_border(direction: tuple[float, float, float]) -> None:
    vertices = np.random.default_rng(3).normal(size=(200, 3)) * [4.0, 1.0, 2.0] + 7.0
    camera = Camera.framing(vertices, direction, aspect=1.5, margin=1.0)
    across, above, away = camera.axes() @ (vertices - camera.eye).T
    half = math.tan(camera.field_of_view / 2)
    reach = max(np.abs(above / away / half).max(), np.abs(across / away / half / 1.5).max())
    assert away.min() > 0.0
    assert reach == pytest.approx(1.0, abs=1e-9)


def test_sequential_map_rises_in_luminance_at_an_even_pace() -> None:
    light = luminance(sequential(np.linspace(0.0, 1.0, 256)))
    assert (np.diff(light) > 0.0).all()
    assert light[0] < 0.05
    assert light[-1] > 0.7
    assert np.array_equal(sequential(np.array([2.0, 9.0]), low=3.0, high=4.0), sequential(np.array([3.0, 4.0])))


def test_lightened_colours_keep_their_proportions_and_order() -> None:
    dark, brown = np.array([0.01, 0.01, 0.01]), np.array([0.08, 0.04, 0.02])
    for colour in (dark, brown):
        np.testing.assert_allclose(luminance(lightened(colour, 0.5)), luminance(lightened(colour, 1.0)) ** 0.5)
        light = linear(lightened(colour, 0.5))
        np.testing.assert_allclose(light / light[0], colour / colour[0])
    np.testing.assert_allclose(lightened(np.ones((2, 3)), 0.5), 1.0)
    assert (lightened(np.zeros(3), 0.5) == 0.0).all()


def test_diverging_map_peaks_in_the_middle() -> None:
    light = luminance(diverging(np.linspace(-1.0, 1.0, 257)))
    assert abs(int(np.argmax(light)) - 128) <= 2
    assert (np.diff(light[:126]) > 0.0).all()
    assert (np.diff(light[131:]) < 0.0).all()
    red, _, blue = diverging(np.array([1.0, -0.2]))[0]
    assert red > 2 * blue


def test_bad_input_names_the_culprits() -> None:
    vertices, triangles = cube()
    broken = vertices.copy()
    broken[[2, 5], 1] = np.nan
    with pytest.raises(NotFiniteError) as caught:
        Mesh(broken, triangles)
    assert caught.value.indices.tolist() == [2, 5]
    wild = triangles.copy()
    wild[3, 1], wild[7, 0] = 8, -1
    with pytest.raises(IndexRangeError) as caught:
        Mesh(vertices, wild)
    assert caught.value.indices.tolist() == [3, 7]
    with pytest.raises(EmptyMeshError):
        Mesh(vertices, np.zeros((0, 3), int))
    with pytest.raises(EmptyMeshError):
        Mesh(np.zeros((0, 3)), triangles)
    with pytest.raises(EmptyMeshError):
        render([], AHEAD)
    with pytest.raises(InputError, match="colours"):
        Mesh(vertices, triangles, np.ones((5, 3)))
    with pytest.raises(InputError, match="no direction"):
        Camera((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="size"):
        render(Mesh(vertices, triangles), AHEAD, (0, 10))
    with pytest.raises(NotFiniteError):
        sequential(np.array([0.0, np.inf]))


def test_replacing_vertices_checks_them_again() -> None:
    mesh = Mesh(*cube())
    with pytest.raises(NotFiniteError):
        dataclasses.replace(mesh, vertices=np.full((8, 3), np.inf))


def frames(count: int) -> list[np.ndarray]:
    images = np.full((count, 24, 32, 3), 200, np.uint8)
    for i in range(count):
        images[i, 4:12, i : i + 8] = (220, 40, 30)
    return list(images)


def test_gif_has_its_frames_and_its_duration(tmp_path) -> None:
    path = tmp_path / "walk.gif"
    write_gif(path, frames(12), fps=30.0)
    with Image.open(path) as animation:
        assert animation.n_frames == 12
        assert animation.info["loop"] == 0
        total = 0
        for i in range(12):
            animation.seek(i)
            total += animation.info["duration"]
            shown = np.asarray(animation.convert("RGB")).astype(int)
            assert np.abs(shown - frames(12)[i]).max() <= 8
        assert total == 400
    with pytest.raises(InputError) as caught:
        write_gif(path, [*frames(2), np.zeros((3, 3, 3), np.uint8)], fps=30.0)
    assert caught.value.indices.tolist() == [2]
    with pytest.raises(InputError):
        write_gif(path, [], fps=30.0)
    with pytest.raises(InputError):
        write_gif(path, frames(2), fps=0.0)


def test_a_png_that_moves_has_its_frames_its_duration_and_white_paper() -> None:
    wanted = [frame.copy() for frame in frames(7)]
    for frame in wanted:
        frame[:3] = 255
    content = animated_png(wanted, fps=30.0)
    assert content.startswith(b"\x89PNG")
    assert content.index(b"acTL") < content.index(b"IDAT"), "who knows no animations sees the first frame"
    total = 0.0
    with Image.open(io.BytesIO(content)) as animation:
        assert animation.n_frames == 7
        assert animation.info["loop"] == 0
        for i in range(7):
            animation.seek(i)
            total += animation.info["duration"]
            shown = np.asarray(animation.convert("RGB")).astype(int)
            assert np.abs(shown - wanted[i]).max() <= 8
            assert (shown[:3] == 255).all()
    assert total == pytest.approx(1e3 * 7 / 30.0, abs=0.6)
    with pytest.raises(InputError):
        animated_png([], fps=30.0)


def test_what_is_small_and_bright_keeps_its_colours_beside_what_fills_the_picture() -> None:
    tone = np.linspace(40.0, 200.0, 400)
    down, along = np.meshgrid(tone, tone, indexing="ij")
    picture = np.rint(np.stack([down, 0.85 * down + 0.15 * along, 0.7 * down + 0.3 * along], axis=2)).astype(np.uint8)
    share = np.linspace(0.0, 1.0, 16)[None, :, None]
    ramp = (1.0 - share) * np.array([130.0, 120.0, 115.0]) + share * np.array([237.0, 97.0, 41.0])
    picture[100:116, 100:116] = np.rint(ramp)
    with Image.open(io.BytesIO(animated_png([picture, picture[::-1]], fps=10.0))) as animation:
        shown = np.asarray(animation.convert("RGB")).astype(int)
    assert np.abs(shown - picture)[100:116, 100:116].mean() < 8.0


def test_png_round_trip_leaves_no_temporary_file(tmp_path) -> None:
    image = np.random.default_rng(1).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    write_png(tmp_path / "a.png", image)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "a.png")), image)
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.png"
    write_png(path, np.zeros((4, 4, 3), np.uint8))
    before = path.read_bytes()

    def fail(*args: object, **options: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Image.Image, "save", fail)
        with pytest.raises(OSError, match="disk full"):
            write_png(path, np.ones((4, 4, 3), np.uint8))
        with pytest.raises(OSError, match="disk full"):
            write_gif(path, frames(3), fps=10.0)
    with monkeypatch.context() as patch:
        patch.setattr("softrig.files.os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_bytes(path, b"half")
    with pytest.raises(InputError):
        write_png(path, np.zeros((4, 4), np.uint8))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_strip_places_frames_and_writes_captions() -> None:
    image = strip(frames(3), ["start", "middle", "end"], gap=8)
    assert image.shape[1] == 3 * 32 + 2 * 8
    assert np.array_equal(image[:24, 40:72], frames(3)[1])
    assert (image[24:] < 128).any()
    assert strip(frames(4), columns=2, gap=0).shape == (48, 64, 3)
    with pytest.raises(InputError):
        strip(frames(3), ["one"])


def test_what_stands_beneath_covers_nothing() -> None:
    (picture,), bar = frames(1), np.full((6, 10, 3), 7, np.uint8)
    image = beneath(picture, bar, gap=4)
    assert image.shape == (24 + 6 + 8, 32, 3)
    assert np.array_equal(image[:24], picture)
    assert np.array_equal(image[28:34, 11:21], bar)
    assert (image[24:, :11] == 255).all()
    with pytest.raises(InputError, match="wider"):
        beneath(bar, picture)


def test_label_and_colour_bar_draw_ink() -> None:
    blank = np.full((60, 120, 3), 255, np.uint8)
    lower = label(blank, "0.4 s", corner="bottom right", size=14)
    assert (lower[30:, 60:] < 128).any()
    assert (lower[:30] == 255).all()
    assert (label(blank, "two\nlines", size=12)[:, :60] < 128).any()
    bar = colour_bar(sequential, 0.0, 3.0, "mm")
    assert brightness(bar[4:5, :1])[0, 0] < brightness(bar[4:5, -1:])[0, 0]


def test_line_plot_is_well_formed_and_escapes_text() -> None:
    time = np.linspace(0.0, 2.0, 50)
    text = line_plot(
        [
            Series("full <model>", time, np.sin(time)),
            Series("reduced", time, np.sin(time) + 0.01, dashed=True),
        ],
        title="Tip & crate",
        x_label="time, s",
        y_label="height, m",
    )
    root = ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [50, 50]
    words = " ".join("".join(node.itertext()) for node in root.iter())
    for word in ("Tip & crate", "time, s", "height, m", "full <model>", "0.5"):
        assert word in words
    top = min(float(y) for line in lines for _, y in (point.split(",") for point in line.get("points", "").split()))
    names = [node for node in root.iter("{http://www.w3.org/2000/svg}text") if node.text in ("full <model>", "reduced")]
    assert len(names) == 2
    assert all(24.0 < float(node.get("y", "0")) < top for node in names), "the legend is between title and lines"
    with pytest.raises(InputError, match="logarithmic"):
        line_plot([Series("a", time, time)], logarithmic="y")
    ElementTree.fromstring(line_plot([Series("a", time + 1, np.exp(-9 * time))], logarithmic="xy"))
    with pytest.raises(InputError):
        Series("a", time, time[:-1])


def test_a_legend_goes_on_in_the_next_row() -> None:
    places, bottom = legend_places([100.0, 120.0, 90.0], 10.0, 240.0, 0.0, 20.0)
    assert places == [(10.0, 10.0), (110.0, 10.0), (10.0, 30.0)]
    assert bottom == 40.0
    assert legend_places([500.0], 10.0, 240.0, 0.0, 20.0) == ([(10.0, 10.0)], 20.0), "one that is too long stays"


def test_axes_end_on_round_ticks_or_where_the_values_end() -> None:
    loose = fitted_axis(0.3, 9.7, 0.0, 100.0, most=5)
    assert loose.ticks == (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    tight = fitted_axis(0.3, 9.7, 0.0, 100.0, most=5, tight=True)
    assert tight.ticks == (2.0, 4.0, 6.0, 8.0)
    assert tight.pixel(np.array([0.3, 9.7])) == pytest.approx([0.0, 100.0])
    assert fitted_axis(2.0, 300.0, 0.0, 1.0, most=5, logarithmic=True).ticks == (1.0, 10.0, 100.0, 1000.0)
    with pytest.raises(InputError, match=r"cannot begin at 0.0 \(force, N\)"):
        fitted_axis(0.0, 1.0, 0.0, 1.0, most=5, logarithmic=True, name="force, N")
