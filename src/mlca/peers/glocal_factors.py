"""The factors of GLOCAL, their objective, and the line search that improves one at a time.

V and X W have one row per sample, while the released code has one column per sample. E = V U' - Y are the errors on
known cells, P = X W, and L_m = Z_m Z_m' is the correlation of group m, where the rows of Z_m have unit length. With the
weights in `Penalties`, the objective is

    1/2 |E|^2 + latent/2 |V - P|^2 + U/2 |U|^2 + V/2 |V|^2 + W/2 |W|^2 + 1/2 sum_m tr(U R_m U' L_m)

    R_m = overall b_m P' P + local P_m' P_m

where b_m is the share of rows in group m, and P_m are its rows of P.

Neither L_m nor any feature-by-feature product is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlca.base import Rows

Matrix = NDArray[np.float64]

FLAT = 1e-6
STILL = 1e-5
SHORTEST_MOVE = 1e-10
ENOUGH_DESCENT = 1e-4
MAX_TRIALS = 25


class Penalties(NamedTuple):
    """The weights of the terms of the objective, after rescaling by the size of the data."""

    latent: float
    overall: float
    local: float
    U: float
    V: float
    W: float


class Factors:
    """The factors of a label matrix; the caller initialises U, V, W and Z.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (n_rows, n_features)
        The features.
    targets : ndarray of shape (n_rows, n_labels)
        +1 where the row has the label, -1 elsewhere.
    observed : ndarray of shape (n_rows, n_labels) or None
        1 for known targets, 0 for unknown ones; None if all are known.
    groups : ndarray of shape (n_rows,)
        The group of each row, numbered from 0.
    penalties : Penalties
        The weights of the objective.
    max_steps : int
        The largest number of gradient steps per factor.
    """

    U: Matrix
    V: Matrix
    Z: list[Matrix]

    def __init__(
        self,
        rows: Rows,
        targets: Matrix,
        observed: Matrix | None,
        groups: NDArray[np.int64],
        penalties: Penalties,
        max_steps: int,
    ) -> None:
        self.rows = rows
        self.targets = targets
        self.observed = observed
        self.members = [np.flatnonzero(groups == m) for m in range(int(groups.max()) + 1)]
        self.shares = [len(group) / len(groups) for group in self.members]
        self.penalties = penalties
        self.max_steps = max_steps

    @property
    def W(self) -> Matrix:
        """The map from features to the latent space."""
        return self._W

    @W.setter
    def W(self, W: Matrix) -> None:
        self._W = W
        self.P: Matrix = self.rows @ W

    def loss(self) -> float:
        """Return the loss: the weighted sum of the squared errors V U' - Y and V - X W."""
        return half_square(self._errors(self.U, self.V)) + self.penalties.latent * half_square(self.V - self.P)

    def improve_U(self, correlated: bool, reference: bool = False) -> None:
        """Improve U, the labels' factor; `reference` selects the released code's cost."""
        moments = self.moments() if correlated else []
        self.U = descend(
            self.U,
            lambda U: self.cost_U(U, moments, reference),
            lambda U: self.gradient_U(U, moments),
            self.max_steps,
        )

    def improve_V(self) -> None:
        """Improve V, the rows' factor."""
        self.V = descend(self.V, self.cost_V, self.gradient_V, self.max_steps)

    def improve_W(self, correlated: bool, reference: bool = False) -> None:
        """Improve W, the features' factor; `reference` selects the released code's cost."""
        mixing = self.mixing() if correlated else []
        self.W = descend(
            self.W,
            lambda W: self.cost_W(W, mixing, reference),
            lambda W: self.gradient_W(W, mixing),
            self.max_steps,
        )

    def improve_Z(self) -> None:
        """Improve each Z, the factor of a group's correlation; its rows keep unit length."""
        if self.penalties.overall == 0 and self.penalties.local == 0:
            return
        for m, moment in enumerate(self.moments()):
            self.Z[m] = self._improved_Z(self.Z[m], moment)

    def _improved_Z(self, Z: Matrix, moment: Matrix) -> Matrix:
        return descend(
            Z,
            lambda Z: self.cost_Z(Z, moment),
            lambda Z: self.gradient_Z(Z, moment),
            self.max_steps,
            unit_rows,
        )

    def moments(self) -> list[Matrix]:
        """Return the matrix R_m of each group, as defined at the top of this module."""
        overall = self.penalties.overall * (self.P.T @ self.P)
        local = [self.penalties.local * (self.P[group].T @ self.P[group]) for group in self.members]
        return [share * overall + inside for share, inside in zip(self.shares, local, strict=True)]

    def mixing(self) -> list[Matrix]:
        """Return, per group, the matrix that multiplies its rows of P in the correlation term."""
        pulls = [(Z.T @ self.U).T @ (Z.T @ self.U) for Z in self.Z]
        overall = sum(share * pull for share, pull in zip(self.shares, pulls, strict=True))
        return [self.penalties.overall * overall + self.penalties.local * pull for pull in pulls]

    def cost_V(self, V: Matrix) -> float:
        """Return the part of the objective that depends on V."""
        fit = half_square(self._errors(self.U, V)) + self.penalties.latent * half_square(V - self.P)
        return fit + self.penalties.V * half_square(V)

    def gradient_V(self, V: Matrix) -> Matrix:
        """Return the gradient of the objective with respect to V."""
        errors = self._errors(self.U, V)
        return errors @ self.U + self.penalties.latent * (V - self.P) + self.penalties.V * V

    def cost_U(self, U: Matrix, moments: list[Matrix], reference: bool = False) -> float:
        """Return the part of the objective that depends on U, or the released code's variant."""
        errors = self._errors(U, self.V)
        correlation = 0.0
        for Z, moment in zip(self.Z, moments, strict=False):
            seen = Z.T @ U
            correlation += float(np.sum((seen @ moment) * seen))
        if reference:
            return spectral_square(errors) + self.penalties.U * spectral_square(U) + correlation
        return half_square(errors) + self.penalties.U * half_square(U) + correlation / 2

    def gradient_U(self, U: Matrix, moments: list[Matrix]) -> Matrix:
        """Return the gradient of the objective with respect to U."""
        gradient = self._errors(U, self.V).T @ self.V + self.penalties.U * U
        for Z, moment in zip(self.Z, moments, strict=False):
            gradient += Z @ ((Z.T @ U) @ moment)
        return gradient

    def cost_W(self, W: Matrix, mixing: list[Matrix], reference: bool = False) -> float:
        """Return the part of the objective that depends on W, or the released code's variant."""
        P = self.rows @ W
        correlation = float(np.sum(P * self._mixed(P, mixing)))
        if reference:
            fit = self.penalties.latent * spectral_square(self.V - P)
            return fit + self.penalties.W * spectral_square(W) + correlation
        fit = self.penalties.latent * half_square(self.V - P)
        return fit + self.penalties.W * half_square(W) + correlation / 2

    def gradient_W(self, W: Matrix, mixing: list[Matrix]) -> Matrix:
        """Return the gradient of the objective with respect to W."""
        P = self.rows @ W
        pull = self.penalties.latent * (P - self.V) + self._mixed(P, mixing)
        gradient: Matrix = self.rows.T @ pull + self.penalties.W * W
        return gradient

    def cost_Z(self, Z: Matrix, moment: Matrix) -> float:
        """Return the part of the objective that depends on one group's Z."""
        seen = Z.T @ self.U
        return float(np.sum((seen @ moment) * seen)) / 2

    def gradient_Z(self, Z: Matrix, moment: Matrix) -> Matrix:
        """Return the gradient with respect to Z, unprojected as in the released code."""
        return self.U @ (moment @ (self.U.T @ Z))

    def _errors(self, U: Matrix, V: Matrix) -> Matrix:
        errors = V @ U.T - self.targets
        if self.observed is not None:
            errors *= self.observed
        return errors

    def _mixed(self, P: Matrix, mixing: list[Matrix]) -> Matrix:
        mixed = np.zeros_like(P)
        for group, matrix in zip(self.members, mixing, strict=False):
            mixed[group] = P[group] @ matrix
        return mixed


def descend(
    point: Matrix,
    cost: Callable[[Matrix], float],
    gradient: Callable[[Matrix], Matrix],
    max_steps: int,
    restore: Callable[[Matrix], Matrix] = lambda point: point,
) -> Matrix:
    """Minimise a cost by gradient descent with a line search, as in the released code.

    The first trial step has length one. A later trial step is twice the step that would repeat the last gain if the
    cost were quadratic. A step is halved until the cost falls enough. `restore` projects a point onto the feasible set.
    """
    costs = [cost(point)]
    for _ in range(max_steps):
        downhill = -gradient(point)
        steepness = float(np.sum(downhill**2))
        length = float(np.sqrt(steepness))
        if length < FLAT or stands_still(costs):
            break
        step = 4.0 * (costs[-2] - costs[-1]) / steepness if len(costs) > 1 else 0.0
        if step * length <= np.finfo(np.float64).eps:
            step = 1.0 / length
        trial = restore(point + step * downhill)
        lower = cost(trial)
        trials = 1
        while lower > costs[-1] - ENOUGH_DESCENT * step * steepness and trials < MAX_TRIALS:
            step /= 2
            trial = restore(point + step * downhill)
            lower = cost(trial)
            trials += 1
        if lower > costs[-1]:
            break
        point = trial
        costs.append(lower)
        if step * length < SHORTEST_MOVE:
            break
    return point


def stands_still(costs: list[float]) -> bool:
    """Return whether the three gains before the last one were all negligible."""
    return len(costs) >= 5 and bool(np.all(np.abs(np.diff(costs[-5:-1])) < STILL))


def settled(losses: list[float], tolerance: float) -> bool:
    """Return whether the last loss is close to those two, three and four rounds earlier."""
    return len(losses) >= 5 and all(abs(losses[-1] - earlier) < tolerance for earlier in losses[-5:-2])


def half_square(matrix: Matrix) -> float:
    """Return half the squared Frobenius norm."""
    return float(np.vdot(matrix, matrix)) / 2


def spectral_square(matrix: Matrix) -> float:
    """Return the squared spectral norm, from the smaller of the two Gram matrices."""
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    return float(np.linalg.eigvalsh(gram)[-1])


def unit_rows(matrix: Matrix) -> Matrix:
    """Scale every row to unit length."""
    scaled: Matrix = matrix / np.sqrt(np.sum(matrix**2, axis=1, keepdims=True))
    return scaled
