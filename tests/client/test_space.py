"""The space of a repository, from the environment or from its `.holdfast.toml`."""

from pathlib import Path

import pytest

from holdfast.space import InvalidSpaceFile, find_space, find_space_file, read_space_file


@pytest.fixture(autouse=True)
def no_space_is_set(monkeypatch):
    monkeypatch.delenv("HOLDFAST_SPACE", raising=False)


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository with a folder three levels down."""
    root = tmp_path / "shop"
    (root / "src" / "auth" / "tests").mkdir(parents=True)
    (root / ".git").mkdir()
    return root


def write(folder: Path, content: str = 'space = "acme/shop"\n') -> Path:
    file = folder / ".holdfast.toml"
    file.write_text(content)
    return file


def test_the_space_is_found_from_every_folder_of_the_repository(repository):
    file = write(repository)
    assert find_space(repository) == find_space(repository / "src" / "auth" / "tests") == "acme/shop"
    assert find_space_file(repository / "src") == file


def test_the_search_begins_in_the_current_folder(repository, monkeypatch):
    write(repository)
    monkeypatch.chdir(repository / "src")
    assert find_space() == "acme/shop"


def test_the_nearest_file_is_used(repository):
    write(repository)
    write(repository / "src", 'space = "acme/sources"\n')
    assert find_space(repository / "src" / "auth") == "acme/sources"


def test_the_search_ends_at_the_root_of_the_repository(repository):
    write(repository.parent)
    assert find_space(repository / "src") is None


def test_the_root_of_a_linked_worktree_or_submodule_is_a_root(repository):
    write(repository)
    module = repository / "vendor"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../.git/modules/vendor\n")
    assert find_space(module) is None


def test_outside_a_repository_every_folder_above_is_searched(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    write(tmp_path)
    assert find_space(tmp_path / "a" / "b") == "acme/shop"


def test_the_environment_comes_before_the_file(repository, monkeypatch):
    write(repository, "not TOML at all")
    monkeypatch.setenv("HOLDFAST_SPACE", "acme/other")
    assert find_space(repository) == "acme/other"


def test_an_empty_variable_is_none(repository, monkeypatch):
    write(repository)
    monkeypatch.setenv("HOLDFAST_SPACE", "")
    assert find_space(repository) == "acme/shop"


def test_keys_of_other_versions_and_a_byte_order_mark_are_accepted(repository):
    file = repository / ".holdfast.toml"
    file.write_bytes(b'\xef\xbb\xbfcolour = "red"\nspace = "acme/shop"\n[more]\n')
    assert read_space_file(file) == "acme/shop"


@pytest.mark.parametrize(
    "content", ["", "space = 7\n", 'space = ""\n', 'space = "  "\n', '[space]\nname = "acme/shop"\n', "space = acme\n"]
)
def test_a_file_that_names_no_space_is_an_error_with_its_path(repository, content):
    file = write(repository, content)
    with pytest.raises(InvalidSpaceFile, match=str(file)):
        find_space(repository / "src")


def test_a_file_that_is_not_text_is_an_error_with_its_path(repository):
    file = repository / ".holdfast.toml"
    file.write_bytes(b"space = '\xff'\n")
    with pytest.raises(InvalidSpaceFile, match=str(file)):
        find_space(repository)
