"""Fields of the Hessian H = M + J^T D J: sparsity pattern, entries, factorization."""

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.spatial.types import Force, Stiffness, Sym3, Vec3

_hessian = Declare("solve", "scratch", record="hessian")
_hessian_table = Declare("solve", "table", record="hessian")
_hessian_room = Declare("solve", "room", record="hessian")
_hessian_slot = Declare("solve", "slot", record="hessian")
_report = Declare("solve", "report")
_graph = Declare("solve", "scratch", record="graph")
_graph_table = Declare("solve", "table", record="graph")
_panel = Declare("solve", "scratch", record="panel")
_panel_table = Declare("solve", "table", record="panel")
_panel_scratch = Declare("", "scratch", record="panel")

FIELDS = (
    size("nH", "capacity: entries of the Hessian, at most nv (nv + 1) / 2"),
    size("nHblock", "capacity: blocks of the sparse Hessian, at most nblock (nblock + 1) / 2"),
    size("npath", "capacity: entries of rows closed under paths, 0 in a model with many dofs"),
    size("ncouplingmax", "capacity: pairs of branches coupled by rows"),
    size("ngraph", "number of trees, if worlds may be factorized one by one, else 0"),
    size("ngraphword", "number of words of a row of the tree graph"),
    size("nfill", "capacity: couplings of two trees in one world, with fill-in"),
    size("npanel", "capacity: entries of one world's factor"),
    size("npanelcolumn", "number of columns of the widest panel, and of all trees"),
    size("npanelaxis", "number of values of the axes of all trees, six rows of eight each"),
    size("npanelcontact", "capacity: contact slots in panels; 0 for a model with few trees"),
    size("npanelscale", "largest number of dofs of a tree, times its multiple of eight"),
    # stiffness of the rows, at bodies and dofs
    _hessian.rows(Stiffness, "body_K", "nbody", "kg, kg m, kg m^2", "contact stiffness on the body"),
    _hessian.real(
        "dof_K",
        "nv 3",
        "kg, kg m^2",
        "stiffness of the dof's rows, and coupling to the one and two previous dofs of its ball joint",
    ),
    _hessian.real("coupled", "1", "1", "1: rows of this world couple two branches"),
    _hessian.int("pair_dof", "nv", "1", "dofs of a contact between two moving bodies, descending"),
    _hessian.rows(Vec3, "pair_J", "2 nv", "1", "basis rows of this contact at these dofs"),
    # pairs of branches that rows couple
    _hessian.int("ncoupling", "2", "1", "number of pairs of branches coupled by rows: in this step, in the pattern"),
    _hessian_table.long("coupling_key", "ncouplingmax", "1", "key of the pair: higher tip dof x nv + lower tip dof"),
    _hessian_room.long("coupling_room", "ncouplingmax", "1", "buffer of the sort"),
    _hessian_table.long("coupling_last", "ncouplingmax", "1", "the pairs of the current pattern"),
    _hessian_table.rows(
        Force, "coupling_K", "ncouplingmax 6", "kg, kg m, kg m^2", "rows of the stiffness between the two bodies"
    ),
    _hessian.rows(Force, "coupling_force", "nv", "kg, kg m, kg m^2", "K S_j of dofs above a body of a pair"),
    _hessian_slot.rows(
        Sym3, "con_F", "npanelcontact", "kg", "contact in panels or in block rows: stiffness of its point"
    ),
    _hessian_slot.rows(Sym3, "con_A", "npanelcontact", "kg m^2", "contact in panels: stiffness of its rotation axes"),
    _hessian_slot.rows(Vec3, "con_p", "npanelcontact", "kg m", "contact in panels: p of p s^T"),
    _hessian_slot.rows(Vec3, "con_s", "npanelcontact", "1", "contact in panels: s of p s^T, rotation to translation"),
    _hessian_slot.int("con_coupling", "nconmax", "1", "pair of branches coupled by the slot, -1: none"),
    # rows of ancestors, and closed under paths
    _hessian.int(
        "pattern",
        "1",
        "1",
        "0: none; rows of ancestors: 1, 3 (uncoupled trees), 5 (closed under paths); block rows: 2, 4 (no fill-in)",
    ),
    _hessian.int("rowadr", "nv", "1", "first entry of a row of H"),
    _hessian.int("rownnz", "nv", "1", "number of entries of a row of H, the diagonal last"),
    _hessian_table.real("H", "nH", "kg, kg m, kg m^2", "Hessian, then its factor L^T D L"),
    _hessian.real("dinv", "nv", "1/(kg m^2)", "1 / D"),
    _hessian.int("kept", "1", "1", "1: the factor is kept for more right-hand sides"),
    _hessian.int("parent", "nv", "1", "last dof before the diagonal in a row closed under paths, -1: none"),
    _hessian.int("colind", "npath", "1", "columns of the rows closed under paths, ascending"),
    _hessian.int("below", "nv", "1", "number of lower rows with an entry in this column"),
    _hessian.int("belowadr", "nv", "1", "address of the first of these rows in hessian.belowrow"),
    _hessian.int("belowrow", "npath", "1", "lower rows of each column, descending"),
    # rows of blocks
    _hessian.int("blockadr", "nblock", "1", "first block of a block row of H"),
    _hessian.int("blocknum", "nblock", "1", "number of blocks of a block row, the diagonal last"),
    _hessian_table.int("blockcol", "nHblock", "1", "column of each block, ascending"),
    _hessian_table.int("blockoffset", "nHblock", "1", "position of the block's first column in the row"),
    _hessian.int("blockchild", "nblock", "1", "last block eliminated into this block, -1: none"),
    _hessian.int("blocknext", "nblock", "1", "previous block eliminated into the same block"),
    _hessian.int("blockmark", "nblock", "1", "position of a block in the current row"),
    _hessian.int("group", "nblock", "1", "first block of the blocks that couplings connect to a block"),
    _hessian.int("changed", "nblock", "1", "1: this assembly computes the group with this first block"),
    _hessian.int("partial", "1", "1", "1: this assembly computes changed groups only"),
    _hessian.real("assembled", "1", "1", "1: the stored factor is that of this world"),
    _hessian_slot.real("row_weight", "nrowmax", "kg, kg m^2", "scalar row in block rows: D, or 0 at a bound"),
    _hessian.real("pivot", "64", "1", "multipliers of one block of columns"),
    _hessian.int(
        "fill", "1", "1", "block rows: 1 with fill-in, 0 without, -1 without the couplings of two free bodies"
    ),
    # worlds that are factored one at a time, each in its own order
    _report.real("ordered", "1", "1", "1: this world's Hessian is factorized in a separate elimination order"),
    _graph.long("bits", "ngraph ngraphword", "1", "bits: the trees coupled to a tree"),
    _graph.int("degree", "ngraph", "1", "number of trees coupled to a tree"),
    _graph.int("head", "ngraph", "1", "first tree with a degree"),
    _graph.int("next", "ngraph", "1", "next tree with the same degree"),
    _graph.int("prev", "ngraph", "1", "previous tree with the same degree"),
    _graph.int("order", "ngraph", "1", "trees in elimination order"),
    _graph.int("position", "ngraph", "1", "position of a tree in the elimination order"),
    _graph.int("rowadr", "ngraph", "1", "first tree in a tree's row of the factor"),
    _graph.int("rownnz", "ngraph", "1", "number of other trees in the row"),
    _graph_table.int("col", "nfill", "1", "trees of the rows, in elimination order"),
    _graph_table.int("colstart", "nfill", "1", "first columns of these trees in the panel"),
    _panel.int("adr", "ngraph", "1", "first entry of a tree's panel"),
    _panel.int("width", "ngraph", "1", "number of columns of the panel"),
    _panel.int("fits", "1", "1", "1: panels are allocated, 0: not yet, or the capacity is too small"),
    _panel.scalar("cost", "2", "1", "number of multiplications of a factorization: with fill-in, without"),
    _panel_table.scalar("values", "npanel", "kg, kg m, kg m^2", "Hessian of one world, then its factor"),
    _panel.scalar("axes", "npanelaxis", "1, m", "motion axes of the free bodies, a row of eight columns per component"),
    _panel.scalar("rows", "48", "1, m", "point velocities of two free bodies per unit dof, three rows of eight each"),
    _panel.scalar("inverse", "nv", "1/(kg m^2)", "1 / D"),
    _panel.scalar("scale", "npanelscale", "1", "-L between the rows of two trees"),
    _panel.scalar("sum", "48", "1", "sums of six rows, eight partial sums each"),
    _panel_scratch.scalar("zero", "8", "1", "eight zeros"),
    _panel.int("start", "ngraph", "1", "first number of a tree in panel.x"),
    _panel.scalar("x", "npanelcolumn", "1", "right-hand side, then solution: the dofs of a tree from the last one on"),
)
