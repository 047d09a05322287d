"""The GPU bench: figures read from a compiled program, and two algorithms compiled for a GPU."""

import pytest

from experiments.bench import cpe, gpu, gpu_programs
from experiments.settings import Settings

TEXT = """
HloModule jit_f

%fused (p.3: f64[4,88,8]) -> f64[8] {
  %p.3 = f64[4,88,8]{2,1,0} parameter(0)
  ROOT %reduce.1 = f64[8]{0} reduce(%p.3, %zero), dimensions={0,1}, to_apply=%sum
}

%fused.2 (p.4: s32[]) -> s32[] {
  %p.4 = s32[] parameter(0)
  ROOT %add.1 = s32[] add(%p.4, %p.4)
}

%rows.1 (p.5: s32[], p.6: f64[100,9]) -> f64[9] {
  %p.6 = f64[100,9]{1,0} parameter(1)
  %p.5 = s32[] parameter(0)
  %gather.1 = f64[1,9]{1,0} gather(%p.6, %p.5), slice_sizes={1,9}
  ROOT %bitcast.1 = f64[9]{0} bitcast(%gather.1)
}

%part.1 (p.10: f64[100,9]) -> f64[9] {
  %p.10 = f64[100,9]{1,0} parameter(0)
  %slice.1 = f64[40,9]{1,0} slice(%p.10), slice={[0:40], [0:9]}
  ROOT %reduce.2 = f64[9]{0} reduce(%slice.1, %zero), dimensions={0}, to_apply=%sum
}

%set.1 (p.7: f64[100,9], p.8: s32[], p.9: f64[9]) -> (f64[100,9], f64[9]) {
  %p.7 = f64[100,9]{1,0} parameter(0)
  %p.8 = s32[] parameter(1)
  %p.9 = f64[9]{0} parameter(2)
  %negate.1 = f64[9]{0} negate(%p.9)
  %scatter.1 = f64[100,9]{1,0} scatter(%p.7, %p.8, %negate.1), to_apply=%second
  ROOT %tuple.1 = (f64[100,9]{1,0}, f64[9]{0}) tuple(%scatter.1, %negate.1)
}

%body.1 (p.1: (s32[], f64[4,88,8])) -> (s32[], f64[4,88,8]) {
  %p.1 = (s32[], /*index=1*/f64[4,88,8]{2,1,0}) parameter(0)
  %get-tuple-element.1 = f64[4,88,8]{2,1,0} get-tuple-element(%p.1), index=1
  %loop_fusion.1 = f64[8]{0} fusion(%get-tuple-element.1), kind=kLoop, calls=%fused
  %copy.1 = f64[8]{0} copy(%loop_fusion.1)
  %inner.1 = (s32[]) while(%t.1), condition=%c.1, body=%turn.1, backend_config={"known_trip_count":{"n":"3"}}
  %inner.2 = (s32[]) while(%t.1), condition=%c.1, body=%turn.1
  %branch.1 = (s32[]) conditional(%q.1, %t.1, %t.1), branch_computations={%turn.1, %turn.1}
}

%turn.1 (p.2: (s32[])) -> (s32[]) {
  %wrapped_add.1 = s32[] fusion(%p.2), kind=kLoop, calls=%fused.2
}

ENTRY %main (a.1: f64[4,88,8]) -> f64[] {
  %while.1 = (s32[], /*index=1*/f64[4,88,8]) while(%t.2), body=%body.1, backend_config={"known_trip_count":{"n":"44"}}
}
"""


ROWS = """
%turn.2 (p.1: (s32[], f64[100,9])) -> (s32[], f64[100,9]) {
  %table.1 = f64[100,9]{1,0} get-tuple-element(%p.1), index=1
  %at.1 = s32[] get-tuple-element(%p.1), index=0
  %row.1 = f64[9]{0} fusion(%at.1, %table.1), kind=kLoop, calls=%rows.1
  %sums.1 = f64[9]{0} fusion(%table.1), kind=kLoop, calls=%part.1
  %new.1 = (f64[100,9]{1,0}, f64[9]{0}) fusion(%table.1, %at.1, %row.1), kind=kInput, calls=%set.1
}

ENTRY %main.2 (a.1: f64[100,9]) -> f64[] {
  %while.2 = (s32[], f64[100,9]) while(%t.2), body=%turn.2, backend_config={"known_trip_count":{"n":"88"}}
}
"""


def test_read_round_of_a_table_counts_only_rows_read_and_set():
    counted = gpu_programs.read_round(TEXT.partition("%body.1")[0] + ROWS, chunk=88)
    # First a row is read and written. Then 40 rows are read and one is written. Then one row is read and written
    # twice (once into the table), and its old value counts as read. The index counts twice.
    assert counted.bytes == (72 + 72 + 4) + (40 * 72 + 72) + (72 + 72 + 72 + 72 + 4)


def test_read_round_counts_launches_and_bytes():
    counted = gpu_programs.read_round(TEXT, chunk=88, unroll=2)
    assert (counted.kernels, counted.copies) == ((1 + 3 + 1) / 2, 1 / 2)
    assert (counted.unknown, counted.branches, counted.calls) == (1, 1, ())
    # The fusion reads a row of the noise, (4, 8), and writes 8 doubles. The copy reads and writes 8.
    # A turn writes 4 bytes.
    assert counted.bytes == (8 * 32 + 64 + 128 + 4 * 4) / 2
    with pytest.raises(ValueError, match="must have a loop of 88 turns"):
        gpu_programs.read_round(TEXT, chunk=88)


@pytest.mark.slow
def test_report_compiles_two_algorithms_for_a_gpu():
    try:
        gpu_programs.target_mesh()
    except RuntimeError as error:
        pytest.skip(str(error))
    cases = [case for case in cpe.cases() if case.rule in ("uniform", "CLUCB")]
    on_scalars, on_arrays = (gpu.report(cases, Settings(lanes=1024, extra={"arrays": each})) for each in (False, True))
    assert len(on_scalars.grid) == 2
    assert (on_scalars.columns["kernels"] < on_arrays.columns["kernels"]).all()
    assert (on_scalars.columns["predicted"] > on_arrays.columns["predicted"]).all()
