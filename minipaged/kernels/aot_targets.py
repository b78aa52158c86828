"""The cards that kernels can be compiled for without having one, and how many programs they hold.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and NVIDIA's
occupancy calculator for the steps in which registers are given out.
"""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS_PER_SM = 65_536
REGISTER_STEP = 8
"""Registers of a thread are rounded up to a multiple of this."""

PARTITIONS_PER_SM = 4
"""A multiprocessor is four quarters, each with its own registers; a warp lives in one of them."""

RESERVED_SHARED = 1024
"""Bytes of shared memory that the driver takes for itself with every program."""


@dataclass(frozen=True, slots=True)
class Target:
    """A card as the compiler knows it.

    backend, arch, warp_size: Triton's GPUTarget. shared_per_sm, shared_per_program: bytes of shared
    memory that a multiprocessor has, and that one program may ask for. warps_per_sm: warps that a
    multiprocessor holds, programs_per_sm: programs at most; 0 where programs are not counted.
    """

    name: str
    example: str
    backend: str
    arch: int | str
    warp_size: int
    shared_per_sm: int
    shared_per_program: int
    warps_per_sm: int = 0
    programs_per_sm: int = 0

    def programs(self, registers: int, shared: int, num_warps: int) -> int | None:
        """Programs that one multiprocessor holds at once; 0 if not even one fits.

        registers: of a thread. shared: bytes that a program asks for. None where the rule is not
        known here (AMD), unless the shared memory alone forbids the launch.
        """
        if shared > self.shared_per_program:
            return 0
        if not self.warps_per_sm:
            return None
        rounded = -(-max(registers, 1) // REGISTER_STEP) * REGISTER_STEP
        in_a_partition = REGISTERS_PER_SM // PARTITIONS_PER_SM // (rounded * self.warp_size)
        warps = min(self.warps_per_sm, in_a_partition * PARTITIONS_PER_SM)
        by_shared = self.shared_per_sm // (shared + RESERVED_SHARED)
        return min(warps // num_warps, by_shared, self.programs_per_sm)

    def most_registers(self, programs: int, num_warps: int) -> int:
        """Registers of a thread at most, so that a multiprocessor holds `programs` programs."""
        in_a_partition = -(-programs * num_warps // PARTITIONS_PER_SM)
        each = REGISTERS_PER_SM // PARTITIONS_PER_SM // (in_a_partition * self.warp_size)
        return min(255, each // REGISTER_STEP * REGISTER_STEP)

    def most_shared(self, programs: int) -> int:
        """Bytes of shared memory of a program at most, likewise."""
        return min(self.shared_per_program, self.shared_per_sm // programs - RESERVED_SHARED)


def _nvidia(arch: int, example: str, shared_kib: int, warps: int, programs: int) -> Target:
    per_sm = shared_kib * 1024
    per_program = per_sm - RESERVED_SHARED
    name = f"sm_{arch}"
    return Target(name, example, "cuda", arch, 32, per_sm, per_program, warps, programs)


TARGETS = {
    target.name: target
    for target in (
        _nvidia(80, "A100", 164, 64, 32),
        _nvidia(86, "RTX 3090, A10", 100, 48, 16),
        _nvidia(89, "RTX 4090, L4", 100, 48, 24),
        _nvidia(90, "H100, H200", 228, 64, 32),
        _nvidia(100, "B200", 228, 64, 32),
        Target("gfx942", "MI300X", "hip", "gfx942", 64, 65_536, 65_536),
    )
}


def require_targets(names: list[str], backends: set[str]) -> list[Target]:
    """The targets with these names. backends: those of the installed Triton, as "cuda" or "hip".

    ValueError for one that is unknown, or whose backend is not installed; it names those there are.
    """
    there = [name for name, target in TARGETS.items() if target.backend in backends]
    for name in names:
        if name not in there:
            raise ValueError(
                f"target {name!r}: the installed Triton compiles for {', '.join(there) or 'none'}"
            )
    return [TARGETS[name] for name in dict.fromkeys(names)]
