"""Fields of the Hessian H = M + J^T D J: sparsity pattern, entries, factorization."""

from featherlane.lanes.layout import Declare, size

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
    size("npath", "capacity: entries of rows closed under paths, 0 in a model of many dofs"),
    size("ncouplingmax", "capacity: pairs of branches that rows couple"),
    size("ngraph", "trees of a model of many, whose worlds may be factored one by one, else 0"),
    size("ngraphword", "words of a row of the graph of trees"),
    size("nfill", "capacity: couplings of two trees in one world, with fill-in"),
    size("npanel", "capacity: entries of one world's factor"),
    size("npanelcolumn", "columns of the widest panel"),
    size("npanelscale", "square of the most dofs of a tree, at least six eights"),
    # stiffness of the rows, at bodies and dofs
    _hessian.real("body_K", "nbody 21", "kg, kg m, kg m^2", "contact stiffness on the body: aa (6), al (9), ll (6)"),
    _hessian.real(
        "dof_K",
        "nv 3",
        "kg, kg m^2",
        "stiffness of the dof's own rows, and between it and the one and two dofs before it in its ball joint",
    ),
    _hessian.real("coupled", "1", "1", "1: rows of this world couple two branches"),
    _hessian.int("pair_dof", "nv", "1", "dofs of one contact between moving bodies, descending"),
    _hessian.real("pair_J", "2 nv 3", "1", "its basis rows at those dofs"),
    # pairs of branches that rows couple
    _hessian.int("ncoupling", "2", "1", "pairs of branches that rows couple: of this step, of the pattern"),
    _hessian_table.long("coupling_key", "ncouplingmax", "1", "the pair: higher tip dof x nv + the lower one"),
    _hessian_room.long("coupling_room", "ncouplingmax", "1", "room to sort them"),
    _hessian_table.long("coupling_last", "ncouplingmax", "1", "the pairs that the pattern was made for"),
    _hessian_table.real("coupling_K", "ncouplingmax 36", "kg, kg m, kg m^2", "stiffness between the two bodies"),
    _hessian_slot.int("con_coupling", "nconmax", "1", "pair of branches that the slot couples, -1: none"),
    # rows of ancestors, and closed under paths
    _hessian.int(
        "pattern",
        "1",
        "1",
        "rows of ancestors: 1, 3 (trees apart), 5 (closed); block rows: 2, 4 (no fill-in); 0: none yet",
    ),
    _hessian.int("rowadr", "nv", "1", "first entry of a row of H"),
    _hessian.int("rownnz", "nv", "1", "entries of a row of H, the diagonal last"),
    _hessian_table.real("H", "nH", "kg, kg m, kg m^2", "Hessian, then its factor L^T D L"),
    _hessian.real("dinv", "nv", "1/(kg m^2)", "1 / D"),
    _hessian.int("kept", "1", "1", "1: the factor is kept for other right-hand sides"),
    _hessian.int("parent", "nv", "1", "dof before the diagonal in a row closed under paths, -1: none"),
    _hessian.int("colind", "npath", "1", "columns of the rows closed under paths, ascending"),
    _hessian.int("below", "nv", "1", "rows below with an entry in this column"),
    _hessian.int("belowadr", "nv", "1", "the first of them in hessian.belowrow"),
    _hessian.int("belowrow", "npath", "1", "the rows below of each column, descending"),
    # rows of blocks
    _hessian.int("blockadr", "nblock", "1", "first block of a block row of H"),
    _hessian.int("blocknum", "nblock", "1", "blocks of a block row, the diagonal last"),
    _hessian_table.int("blockcol", "nHblock", "1", "column of each block, ascending"),
    _hessian_table.int("blockplace", "nHblock", "1", "place of the block's first column in the row"),
    _hessian.int("blockchild", "nblock", "1", "last block eliminated into this one, -1: none"),
    _hessian.int("blocknext", "nblock", "1", "the one eliminated into the same block before"),
    _hessian.int("blockmark", "nblock", "1", "place of a block in the row at hand"),
    _hessian.real("pivot", "64", "1", "multipliers of one block of columns"),
    _hessian.int("fill", "1", "1", "1: block rows hold what the factor fills in"),
    # worlds that are factored one at a time, each in its own order
    _report.real("ordered", "1", "1", "1: this world's Hessian is factored in an order of its own"),
    _graph.long("bits", "ngraph ngraphword", "1", "bits: trees that a tree is coupled to"),
    _graph.int("degree", "ngraph", "1", "how many they are"),
    _graph.int("head", "ngraph", "1", "first tree of a degree"),
    _graph.int("next", "ngraph", "1", "next tree of the same degree"),
    _graph.int("prev", "ngraph", "1", "the one before"),
    _graph.int("order", "ngraph", "1", "trees in the order of elimination"),
    _graph.int("place", "ngraph", "1", "place of a tree in the order"),
    _graph.int("rowadr", "ngraph", "1", "first tree in a tree's row of the factor"),
    _graph.int("rownnz", "ngraph", "1", "trees in the row, itself left out"),
    _graph_table.int("col", "nfill", "1", "trees of the rows, in the order of elimination"),
    _graph_table.int("colplace", "nfill", "1", "their first columns in the panel"),
    _panel.int("adr", "ngraph", "1", "first entry of a tree's panel"),
    _panel.int("width", "ngraph", "1", "columns of the panel"),
    _panel.int("fits", "1", "1", "1: panels have places, 0: not yet, or no room"),
    _panel.scalar("cost", "2", "1", "multiplications of a factor: with fill-in, without"),
    _panel_table.scalar("values", "npanel", "kg, kg m, kg m^2", "Hessian of one world, then its factor"),
    _panel.scalar("inverse", "nv", "1/(kg m^2)", "1 / D"),
    _panel.scalar("scale", "npanelscale", "1", "-L between the rows of two trees"),
    _panel.scalar("column", "npanelcolumn", "1", "x of the trees in one row, as in its panel"),
    _panel.scalar("sum", "8", "1", "sums of one row, eight side by side"),
    _panel_scratch.scalar("zero", "8", "1", "eight zeros"),
    _panel.scalar("x", "nv", "1", "right-hand side, then solution"),
)
