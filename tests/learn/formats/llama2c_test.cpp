#include "kernels/learn/formats/llama2c.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <array>
#include <sstream>
#include <string>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// A file with these seven numbers and `floats` ascending values.
std::string file_of(std::array<std::int32_t, 7> front, std::size_t floats) {
  std::string out(reinterpret_cast<const char*>(front.data()), 28);
  for (std::size_t i = 0; i < floats; ++i) {
    const auto value = static_cast<float>(i);
    out.append(reinterpret_cast<const char*>(&value), 4);
  }
  return out;
}

result<llama2c_model> read(const std::string& file) {
  std::istringstream in(file);
  return read_llama2c(in, file.size(), "m.bin");
}

const named_tensor& tensor(const llama2c_model& of, const std::string& name) {
  for (const auto& each : of.tensors)
    if (each.name == name) return each;
  FAIL("no tensor " << name);
  return of.tensors.front();
}

} // namespace

TEST_CASE("llama2.c: kinds of the file become layers and rotated rows become halves") {
  // dim 4, hidden 3, 2 layers, 1 head, vocabulary 5, context 2.
  const llama_shape shape{4, 3, 2, 1, 1, 5, 2, true};
  const std::size_t layer = 4 + 4 * 16 + 4 + 3 * 12;
  CHECK(parameter_count(shape) == 20 + 2 * layer + 4);
  const auto model = read(file_of({4, 3, 2, 1, 1, 5, 2}, 20 + 2 * layer + 4 + 8));
  REQUIRE_MESSAGE(model.ok(), model.error());
  CHECK(model->shape == shape);
  CHECK(model->tensors.size() == 1 + 2 * 9 + 1);
  CHECK(tensor(*model, "model.layers.1.input_layernorm.weight").values ==
        std::vector<float>{24, 25, 26, 27});
  // wq of layer 0 begins at 28. Its rows 0, 1, 2, 3 become 0, 2, 1, 3.
  CHECK(tensor(*model, "model.layers.0.self_attn.q_proj.weight").values ==
        std::vector<float>{28, 29, 30, 31, 36, 37, 38, 39, 32, 33, 34, 35, 40, 41, 42, 43});
  // v is not rotated. It begins after q and k of both layers.
  CHECK(tensor(*model, "model.layers.0.self_attn.v_proj.weight").values.front() == 28 + 64);
  CHECK(tensor(*model, "model.norm.weight").values.front() == 20 + 2 * layer);

  // A negative vocabulary adds the output matrix behind the tables.
  const auto untied = read(file_of({4, 3, 2, 1, 1, -5, 2}, 20 + 2 * layer + 4 + 8 + 20));
  REQUIRE_MESSAGE(untied.ok(), untied.error());
  CHECK(!untied->shape.tied);
  CHECK(tensor(*untied, "lm_head.weight").values.front() == 20 + 2 * layer + 4 + 8);
}

TEST_CASE("llama2.c: files of other sizes get an error that says what is wrong") {
  CHECK(read("abc").error() == "llama2.c model: 'm.bin' is truncated in its header of 28 bytes");
  CHECK(read(file_of({4, 3, 2, 1, 1, 5, 2}, 10)).error() ==
        "llama2.c model: 'm.bin' has 68 bytes; a model of dim 4, 2 layers and a vocabulary of 5 "
        "needs 1020; copy it again");
  CHECK(read(file_of({4, 3, 2, 3, 1, 5, 2}, 10)).error() ==
        "llama2.c model: 'm.bin' is no model of llama2.c: its dim 4 is no multiple of twice its 3 "
        "heads");
  CHECK(read(file_of({0, 3, 2, 3, 1, 5, 2}, 10)).error() ==
        "llama2.c model: 'm.bin' is no model of llama2.c: its dim is 0");
  CHECK(read(file_of({8, 3, 2, 4, 3, 5, 2}, 10))
            .error()
            .ends_with("its 4 heads are no multiple of its 3 kv_heads"));
  CHECK(read(file_of({0x616b3432, 1, 2, 4, 3, 5, 2}, 10)).error() ==
        "llama2.c model: 'm.bin' has format version 1 of llama2.c; export it with --version 0");
  CHECK(!read(file_of({1 << 24, 1 << 24, 1 << 24, 1 << 22, 1 << 22, 1 << 24, 1 << 24}, 0)).ok());
  CHECK(load_llama2c("/nowhere").error() == "llama2.c model: '/nowhere' does not exist");
}

TEST_CASE("llama2.c: the published model equals its copy in safetensors") {
  SHOAL_NEEDS_DATA(path, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(copy, "stories260K/hf/model.safetensors");
  const auto model = load_llama2c(path);
  REQUIRE_MESSAGE(model.ok(), model.error());
  CHECK(model->shape == llama_shape{64, 172, 5, 8, 4, 512, 512, true});
  CHECK(parameter_count(model->shape) == 260032);
  const auto file = safetensors::open(copy);
  REQUIRE_MESSAGE(file.ok(), file.error());
  CHECK(file->tensors().size() == model->tensors.size());
  for (const auto& each : model->tensors) {
    const auto other = file->take(each.name, each.shape);
    REQUIRE_MESSAGE(other.ok(), other.error());
    CHECK(other->values == each.values);
  }
}
