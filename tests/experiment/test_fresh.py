"""A run on fresh points every step goes on from its checkpoint bit for bit."""

from natgrad.experiment.config import Config
from natgrad.experiment.run import run
from tests.experiment.small_runs import assert_same_run, timeless

SETTINGS = ("dim=2", "width=6,6", "interior=12", "boundary=8", "fresh=true", "momentum=0.5")


def train(folder, steps, **options):
    config = Config("poisson_nd", "kernel", steps=steps, settings=SETTINGS, evaluate_every=3)
    return run(config, folder, quiet=True, say=lambda text: None, **options)


def test_a_run_on_fresh_points_goes_on_where_it_stopped(tmp_path):
    train(tmp_path / "whole", 6)
    train(tmp_path / "parts", 3)
    train(tmp_path / "parts", 6, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    losses = [record["loss"] for record in timeless(tmp_path / "whole")]
    assert len(set(losses)) == 6
