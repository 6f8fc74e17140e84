// Small decoders of each kind of layer, for tests.
#pragma once

#include "kernels/learn/decoder.hpp"

#include <cstdint>

namespace shoal::test {

enum class decoder_kind { llama, bytes, gpt2, bloom };
inline constexpr decoder_kind decoder_kinds[] = {decoder_kind::llama, decoder_kind::bytes,
                                                 decoder_kind::gpt2, decoder_kind::bloom};

inline learn::decoder_config small_decoder(decoder_kind what, std::int64_t layers = 2,
                                           std::int64_t context = 6) {
  const bool llama = what == decoder_kind::llama;
  learn::decoder_config out;
  out.layers = layers;
  out.heads = 4;
  out.kv_heads = llama ? 2 : 4;
  out.dim = 16;
  out.hidden = llama ? 20 : 64;
  out.context = context;
  out.vocabulary = 11;
  out.norm = llama ? learn::norm_kind::root_mean_square : learn::norm_kind::layer;
  out.mlp = llama ? learn::mlp_kind::swiglu : learn::mlp_kind::gelu;
  out.rotary = llama ? learn::rotary_pairs::interleaved : learn::rotary_pairs::halves;
  out.tied = !llama;
  if (llama || what == decoder_kind::bytes) return out;
  out.mlp = learn::mlp_kind::gelu_tanh;
  out.biases = true;
  out.positions =
      what == decoder_kind::gpt2 ? learn::position_kind::learned : learn::position_kind::alibi;
  out.embedding_norm = what == decoder_kind::bloom;
  out.tied = what == decoder_kind::gpt2;
  return out;
}

} // namespace shoal::test
