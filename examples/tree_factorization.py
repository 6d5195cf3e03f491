"""Factors the inertia matrix of a robot with branch-induced sparsity (Featherstone, chapter 6)."""

import numpy as np

import featherlane as fl


def main():
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    fl.forward(model, data)
    parents, H = model.dof_parentid, fl.query.full_m(model, data)

    # the sparsity pattern follows from the kinematic tree
    pattern = fl.tree.sparsity(parents)
    print(
        f"{model.nv} DoFs, {pattern.mean():.0%} of the entries of H belong to its tree"
    )
    assert not H[~pattern].any()

    # H = L^T D L: L has the pattern of the tree, without fill-in
    L, D = fl.tree.ltdl(H, parents)
    print(f"largest error of L^T D L: {abs(L.T @ np.diag(D) @ L - H).max():.1e}")
    assert not L[~pattern].any()

    # products and solutions use the same pattern
    b = np.random.default_rng(0).standard_normal(model.nv)
    x = fl.tree.solve(H, parents, b)
    print(
        f"largest residual of H x = b: {abs(fl.tree.mul_h(H, parents, x) - b).max():.1e}"
    )

    # operation counts
    table = fl.tree.cost_table(parents)
    for name in ("ltdl", "cholesky", "back_ltdl", "back_cholesky"):
        print(f"{name:>14}: {table[name].flops:5d} operations")
    costs = fl.tree.compare_costs(parents)
    by_matrix = costs.rne + costs.crb + costs.ltdl + costs.solve
    print(
        f"forward dynamics: {by_matrix.flops} operations by H, {costs.aba.flops} by articulated bodies"
    )


if __name__ == "__main__":
    main()
