// Loads the module that calls libtorch (torch_module.cpp), which lies beside the program.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_math.hpp"
#include "kernels/learn/dalle_math.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <memory>

namespace shoal::learn {

/// Has OpenBLAS take its loops for AVX2 on each processor that has AVX2, so that one scenario has
/// one history on all of them. Debian's OpenBLAS takes instructions of 2004 for a processor that is
/// newer than itself, which is four times as slow. A user who has set OPENBLAS_CORETYPE keeps the
/// choice. The call has an effect before a program loads OpenBLAS. load_torch() calls it.
void choose_loops();

/// Loads libtorch, once; the error says why it cannot be.
result<void> load_torch();

/// Makes tensor operations of the calling thread (libtorch) and of the process (OpenBLAS)
/// single-threaded. OpenMP's setting is per thread, so each thread that computes calls this;
/// models do so themselves. Does nothing where libtorch is not loaded.
void use_one_thread();

/// The functions of a transformer of this shape. Loads libtorch, and throws std::runtime_error
/// where that fails.
std::shared_ptr<const transformer_math> make_transformer_math(const transformer_shape& shape);
/// The same for ALBERT.
std::shared_ptr<const albert_math> make_albert_math(const albert_shape& shape);
/// The same for DALL-E.
std::shared_ptr<const dalle_math> make_dalle_math(const dalle_shape& shape);

} // namespace shoal::learn
