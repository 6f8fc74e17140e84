// Functions that are also compiled for wider vectors. The processor chooses one when the program
// starts. The bits are the same on every CPU: no operation is fused or reordered
// (-ffp-contract=off),
// and only the vectors are wider.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHOAL_WIDER __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SHOAL_WIDER
#endif
