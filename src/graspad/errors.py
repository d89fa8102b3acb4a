"""Every error a user can meet: what is wrong, why, and what to type instead."""

from __future__ import annotations

from pydantic import ValidationError


class GraspError(ValueError):
    """Base of all errors that graspad raises on purpose."""


class InvalidSettingError(GraspError):
    """A parameter has a value that the method cannot use."""

    @classmethod
    def of(cls, name: str, must: str, got: object) -> InvalidSettingError:
        """Say it as scikit-learn does.

        >>> print(InvalidSettingError.of("tau", "be a float in the range [0, inf)", -1))
        The 'tau' parameter must be a float in the range [0, inf). Got -1 instead.
        """
        return cls(f"The {name!r} parameter must {must}. Got {got!r} instead.")

    @classmethod
    def from_pydantic(cls, error: ValidationError) -> InvalidSettingError:
        """Turn pydantic's report into one line a parameter, in the same grammar."""
        lines = []
        for item in error.errors(include_url=False):
            name = ".".join(str(part) for part in item["loc"]) or "settings"
            if item["type"] == "extra_forbidden":
                lines.append(f"There is no {name!r} parameter.")
            else:
                must = item["msg"].removeprefix("Input should ").removeprefix("Value error, ")
                lines.append(str(cls.of(name, must, item["input"])))
        return cls("\n".join(lines))


class InputError(GraspError):
    """The data given to fit or score cannot be used as it is."""


class NotFittedError(GraspError, AttributeError):
    """The detector was asked for something it only knows after fit."""


class ModelFileError(GraspError):
    """A file with a saved model cannot be written or read."""

    @classmethod
    def of(cls, path: object, told: str, remedy: str) -> ModelFileError:
        """Name the file, what is wrong with it and what to do.

        >>> print(ModelFileError.of("pump7.grasp", "does not exist", "Check the path."))
        The model file 'pump7.grasp' does not exist. Check the path.
        """
        return cls(f"The model file {str(path)!r} {told}. {remedy}")
