// Functions that are compiled for wider vectors too, chosen by the processor when the program
// starts. The same bits on every CPU: no operation is fused or reordered (-ffp-contract=off), only
// wider.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHOAL_WIDER __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SHOAL_WIDER
#endif
