#include "kernels/learn/formats/sentencepiece_model.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/program_file.hpp"
#include "kernels/learn/formats/sentencepiece_calls.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace shoal::learn {

namespace {

struct sentencepiece_module {
  decltype(&shoal_make_sentencepiece) make = nullptr;
  std::string error;
};

/// Beside the program, where the build puts it, or where an installation does.
sentencepiece_module load_module() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = program_file().parent_path();
  const char* name = "libshoal_sentencepiece.so";
  sentencepiece_module out;
  for (const auto& path : {here / name, here.parent_path() / "lib" / "shoal" / name}) {
    if (!fs::exists(path, error)) continue;
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle)
      out.make = reinterpret_cast<decltype(out.make)>(dlsym(handle, "shoal_make_sentencepiece"));
    if (!out.make) out.error = std::string("SentencePiece cannot be loaded: ") + dlerror();
    return out;
  }
  out.error = std::string(name) + ", which calls SentencePiece, is neither in " + here.string() +
              " nor in " + (here.parent_path() / "lib" / "shoal").string() +
              "; it belongs to the program and goes where that goes";
  return out;
}

const sentencepiece_module& module() {
  static const sentencepiece_module loaded = load_module();
  return loaded;
}

} // namespace

struct sentencepiece_model::state {
  std::unique_ptr<sentencepiece_calls> processor;
};

sentencepiece_model::sentencepiece_model(std::unique_ptr<state> state) : state_(std::move(state)) {}
sentencepiece_model::sentencepiece_model(sentencepiece_model&&) noexcept = default;
sentencepiece_model::~sentencepiece_model() = default;

result<sentencepiece_model> sentencepiece_model::from_bytes(std::string_view bytes,
                                                            const std::string& name) {
  if (!module().make) return failure{module().error};
  auto read = std::make_unique<state>();
  read->processor.reset(module().make());
  if (bytes.empty() || !read->processor->load(bytes) || read->processor->pieces() <= 0)
    return failure{"tokenizer: '" + name +
                   "' is no model of SentencePiece; give a tokenizer.json, a .model of "
                   "SentencePiece, or a folder with one"};
  return sentencepiece_model(std::move(read));
}

std::int64_t sentencepiece_model::vocabulary() const {
  return state_->processor->pieces();
}

std::vector<token_id> sentencepiece_model::encode(std::string_view text) const {
  std::vector<int> ids;
  const bool done = state_->processor->encode(text, ids);
  SHOAL_CHECK(done, "a loaded model of SentencePiece encodes all texts");
  return {ids.begin(), ids.end()};
}

std::string sentencepiece_model::decode(std::span<const token_id> tokens) const {
  std::vector<int> ids;
  for (const auto id : tokens) {
    SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
    ids.push_back(static_cast<int>(id));
  }
  std::string out;
  const bool done = state_->processor->decode(ids, out);
  SHOAL_CHECK(done, "a loaded model of SentencePiece decodes all of its tokens");
  return out;
}

std::string sentencepiece_model::token(token_id id) const {
  SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
  return state_->processor->piece(static_cast<int>(id));
}
token_id sentencepiece_model::unknown() const {
  return state_->processor->unknown();
}

} // namespace shoal::learn
