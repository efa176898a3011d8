from __future__ import annotations

import pickle

from onedomain.data.datasets.base import MissingData
from onedomain.errors import UserError


def test_an_error_comes_back_from_another_process_as_it_was():
    for error in (UserError("x.png", "is broken", "a whole file"), MissingData("svhn", "not found")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
