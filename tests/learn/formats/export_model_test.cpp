#include "kernels/learn/formats/export_model.hpp"
#include "kernels/learn/formats/import_model.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <numeric>
#include <string>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// A checkpoint with the tensors of a small ALBERT, in the order of its description.
checkpoint small_albert() {
  hugging_face::albert_config sizes;
  sizes.vocabulary = 9;
  sizes.embedding = 2;
  sizes.hidden = 4;
  sizes.layers = 3;
  sizes.heads = 2;
  sizes.intermediate = 5;
  sizes.positions = 6;
  checkpoint out;
  out.workload = "albert";
  out.model =
      R"({"embedding":2,"feed_forward":5,"heads":2,"hidden":4,"layers":3,"positions":6,"vocabulary":9})";
  std::size_t offset = 0;
  const auto tensors = tensors_of(sizes).value();
  for (const auto& each : tensors) {
    out.tensors.push_back({each.name, offset, each.shape});
    offset += out.tensors.back().size();
  }
  out.parameters.resize(offset);
  std::iota(out.parameters.begin(), out.parameters.end(), 1.f);
  return out;
}

} // namespace

TEST_CASE("export: an ALBERT becomes a folder that reads back equal") {
  const scratch_folder here;
  const auto state = small_albert();
  const auto folder = here.path / "a" / "hf";
  const auto done = export_hugging_face(state, folder);
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error()));
  const auto config = load_model_config(folder / "config.json");
  REQUIRE_MESSAGE(config.ok(), config.error());
  CHECK(std::get<hugging_face::albert_config>(*config).intermediate == 5);
  const auto file = safetensors::open(folder / "model.safetensors");
  REQUIRE_MESSAGE(file.ok(), file.error());
  CHECK(file->metadata().at("format") == "pt");
  for (const auto& slot : state.tensors) {
    const auto got = file->take(slot.name, slot.shape);
    REQUIRE_MESSAGE(got.ok(), got.error());
    CHECK(got->values.front() == state.parameters[slot.offset]);
    CHECK(got->values.back() == state.parameters[slot.offset + slot.size() - 1]);
  }
  CHECK(export_hugging_face(state, folder).error() ==
        "'" + folder.string() + "' is not empty; name a new folder");
}

TEST_CASE("export: models without a layout in transformers are refused and leave no file") {
  const scratch_folder here;
  checkpoint state = small_albert();
  state.workload = "transformer";
  CHECK(export_hugging_face(state, here.path / "t").error() ==
        "has a model of the workload 'transformer', which transformers has no layout for; these "
        "have one: albert; --format safetensors writes the tensors of any model");
  CHECK(!std::filesystem::exists(here.path / "t"));
  state.workload = "albert";
  auto other = state;
  other.model = "{}";
  CHECK(export_hugging_face(other, here.path / "t").error() ==
        "has a description of its model that lacks a size");
  other = state;
  other.tensors.back().shape = {3};
  CHECK(export_hugging_face(other, here.path / "t").error() ==
        "has no tensor 'sop_classifier.classifier.bias' of shape [2], which its model needs in "
        "transformers");
  CHECK(!std::filesystem::exists(here.path / "t"));
}

TEST_CASE("export: any model becomes safetensors with its own names") {
  const scratch_folder here;
  checkpoint state;
  state.workload = "quadratic";
  state.tensors = one_tensor("weights", 3);
  state.parameters = {1, 2, 3};
  state.notes["seed"] = "7";
  REQUIRE(export_safetensors(state, here.path / "q.safetensors").ok());
  const auto file = safetensors::open(here.path / "q.safetensors");
  REQUIRE_MESSAGE(file.ok(), file.error());
  CHECK(file->metadata().at("seed") == "7");
  CHECK(file->metadata().at("workload") == "quadratic");
  CHECK(*file->read_floats(*file->find("weights")) == state.parameters);
}

TEST_CASE("import: an exported model begins a new training with the same parameters") {
  const scratch_folder here;
  auto state = small_albert();
  const auto folder = here.path / "hf";
  REQUIRE(export_hugging_face(state, folder).ok());
  auto wanted = state;
  wanted.parameters.clear();
  const auto read = import_model(folder, wanted);
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(read->parameters == state.parameters);
  CHECK(read->optimizer_state.size() ==
        kernels::state_bytes(state.optimizer, state.parameters.size()));
  CHECK(read->state_id.size() == 32);
  CHECK(continues(*read, wanted).ok());
  CHECK(import_model(folder / "model.safetensors", wanted)->parameters == state.parameters);

  // Two heads and four have the same tensors, so only the config tells them apart.
  wanted.model.replace(wanted.model.find("\"heads\":2"), 9, "\"heads\":4");
  CHECK(import_model(folder, wanted).error() ==
        "model: '" + (folder / "config.json").string() +
            "' has num_attention_heads 2; the scenario's model has 4");
  wanted = state;
  wanted.tensors.front().shape = {18};
  CHECK(import_model(folder / "model.safetensors", wanted).error().find("has the tensor ") !=
        std::string::npos);
  CHECK(!import_model(here.path / "nothing.safetensors", wanted).ok());
  CHECK(is_exchanged_model(folder));
  CHECK(!is_exchanged_model(folder / "final.ckpt"));
}
