"""The instrument for GPUs: what it reads of a compiled program, and that two algorithms compile for one."""

import pytest

from experiments.bench import cpe, gpu, gpu_programs
from experiments.settings import Settings

TEXT = """
HloModule jit_f

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


def test_what_a_round_launches_is_read_from_the_program():
    found = gpu_programs.read_round(TEXT, chunk=88, unroll=2)
    assert (found.kernels, found.copies) == ((1 + 3 + 1) / 2, 1 / 2)
    assert (found.unknown, found.branches, found.calls) == (1, 1, ())
    # The fusion reads a row of the noise, (4, 8), and writes 8 doubles; the copy both; a turn writes 4 bytes.
    assert found.bytes == (8 * 32 + 64 + 128 + 4 * 4) / 2
    with pytest.raises(ValueError, match="must have a loop of 88 turns"):
        gpu_programs.read_round(TEXT, chunk=88)


@pytest.mark.slow
def test_two_algorithms_compile_for_a_gpu():
    try:
        gpu_programs.target_mesh()
    except RuntimeError as error:
        pytest.skip(str(error))
    cases = [case for case in cpe.cases() if case.rule in ("uniform", "CLUCB")]
    on_scalars, on_arrays = (gpu.report(cases, Settings(lanes=1024, own={"arrays": each})) for each in (False, True))
    assert len(on_scalars.grid) == 2
    assert (on_scalars.columns["kernels"] < on_arrays.columns["kernels"]).all()
    assert (on_scalars.columns["predicted"] > on_arrays.columns["predicted"]).all()
