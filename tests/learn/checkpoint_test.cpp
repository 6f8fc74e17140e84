// kernels/learn/checkpoint: a saved state comes back, and a file that is not a checkpoint is
// refused with the reason.
#include "kernels/base/digest.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/transformer_description.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>

using namespace shoal;
using namespace shoal::learn;
namespace fs = std::filesystem;

namespace {

const kernels::transformer_config small{.layers = 1, .heads = 2, .dim = 8, .context = 16};

checkpoint example() {
  checkpoint c;
  c.workload = "transformer";
  c.model = description_of(small);
  c.tensors = layout_of(small);
  c.optimizer = {.learning_rate = 0.1 + 0.2, .warmup_steps = 7};
  c.epoch = 12;
  c.step = 11;
  c.samples = 768;
  c.data_from = 800;
  c.state_id = "0011aa";
  c.notes = {{"scenario", "quickstart"}, {"odd", "line\nfeed \"quoted\""}};
  c.parameters = initial_parameters(small, 1);
  c.optimizer_state.assign(state_bytes(c.optimizer, c.parameters.size()), std::byte{63});
  return c;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string error_for(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  const auto loaded = load_checkpoint(path);
  return loaded.ok() ? "" : loaded.error();
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a checkpoint comes back bit by bit, odd values included") {
  const scratch_folder folder;
  auto saved = example();
  saved.parameters[0] = std::numeric_limits<float>::infinity();
  saved.parameters[1] = -0.0F;
  saved.parameters[2] = std::numeric_limits<float>::denorm_min();
  REQUIRE(save(saved, folder.path / "a.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "a.ckpt");
  REQUIRE(loaded.ok());
  CHECK(loaded->model == saved.model);
  CHECK(loaded->optimizer == saved.optimizer);
  CHECK(loaded->epoch == 12);
  CHECK(loaded->step == 11);
  CHECK(loaded->samples == 768);
  CHECK(loaded->data_from == 800);
  CHECK(loaded->workload == "transformer");
  CHECK(loaded->tensors.size() == saved.tensors.size());
  CHECK(loaded->state_id == saved.state_id);
  CHECK(loaded->notes == saved.notes);
  CHECK(loaded->parameters == saved.parameters);
  CHECK(std::signbit(loaded->parameters[1]));
  CHECK(loaded->optimizer_state == saved.optimizer_state);
}

TEST_CASE("the state of a training method comes back beside the optimizer's, and a file without "
          "one keeps its form") {
  const scratch_folder folder;
  auto saved = example();
  REQUIRE(save(saved, folder.path / "plain.ckpt").ok());
  CHECK(load_checkpoint(folder.path / "plain.ckpt")->method_state.empty());
  CHECK_FALSE(contains(read(folder.path / "plain.ckpt"), "method_state"));
  saved.method_state.assign(20, std::byte{7});
  REQUIRE(save(saved, folder.path / "a.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "a.ckpt");
  REQUIRE(loaded.ok());
  CHECK(loaded->optimizer_state == saved.optimizer_state);
  CHECK(loaded->method_state == saved.method_state);
  saved.optimizer_state.clear();
  REQUIRE(save(saved, folder.path / "b.ckpt").ok());
  CHECK(load_checkpoint(folder.path / "b.ckpt")->method_state == saved.method_state);
}

TEST_CASE("saving replaces the old file and leaves nothing else behind") {
  const scratch_folder folder;
  auto c = example();
  REQUIRE(save(c, folder.path / "a.ckpt").ok());
  c.epoch = 13;
  c.optimizer_state.clear();
  REQUIRE(save(c, folder.path / "a.ckpt").ok());
  CHECK(load_checkpoint(folder.path / "a.ckpt")->epoch == 13);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("a failed write is reported with the path and the reason") {
  const auto failed = save(example(), "/nonexistent/folder/a.ckpt");
  REQUIRE(!failed.ok());
  CHECK(failed.error() ==
        "checkpoint: cannot create '/nonexistent/folder/a.ckpt': No such file or directory");
  if (fs::exists("/dev/full")) {
    // A full disk: the temporary name is a link to a device without space.
    const scratch_folder folder;
    fs::create_symlink("/dev/full", folder.path / "a.ckpt.partial");
    const auto full = save(example(), folder.path / "a.ckpt");
    REQUIRE(!full.ok());
    CHECK(contains(full.error(), "No space left on device"));
    CHECK(!fs::exists(folder.path / "a.ckpt"));
  }
}

TEST_CASE("files that are not checkpoints or are damaged are refused with the reason") {
  const scratch_folder folder;
  const auto path = folder.path / "a.ckpt";
  REQUIRE(save(example(), path).ok());
  const auto good = read(path);

  CHECK(contains(load_checkpoint(folder.path / "none").error(), "does not exist"));
  CHECK(contains(load_checkpoint(folder.path).error(), "is not a file"));
  CHECK(contains(error_for(path, ""), "is not a Shoal checkpoint"));
  CHECK(contains(error_for(path, "PK\3\4 some other format altogether"),
                 "is not a Shoal checkpoint"));

  auto bad = good;
  bad[8] = 9;
  CHECK(contains(error_for(path, bad), "has checkpoint format 9; this program reads format 2"));
  bad = good;
  bad[12] = bad[13] = bad[14] = bad[15] = '\xff';
  CHECK(contains(error_for(path, bad), "truncated in its header"));
  bad = good;
  bad[16] = '[';
  CHECK(contains(error_for(path, bad), "header that cannot be understood"));
  CHECK_FALSE(contains(error_for(path, bad), "json.exception"));
  CHECK(contains(error_for(path, good.substr(0, good.size() - 1)), "truncated"));
  CHECK(contains(error_for(path, good.substr(0, 40)), "truncated in its header"));
  CHECK(contains(error_for(path, good + "x"), "bytes too many"));
  // The message names the section, the expected hash and the actual one.
  const auto floats = example().parameters.size(), states = example().optimizer_state.size();
  const auto end = good.size() - 4 * 32;
  const auto damaged = [&](std::size_t at) {
    auto copy = good;
    copy[at] ^= 1;
    return error_for(path, copy);
  };
  CHECK(contains(damaged(good.find("quickstart")), "the hash of its header should be "));
  CHECK(contains(damaged(end - states - 4), "the hash of its parameters should be "));
  CHECK(contains(damaged(end - states - 4 * floats), "the hash of its parameters should be "));
  CHECK(contains(damaged(end - 1), "the hash of its optimizer state should be "));
  CHECK(contains(damaged(end), "the hash of its header should be "));
  CHECK(contains(damaged(good.size() - 1), "the hash of its whole file should be "));
  const auto said = damaged(end - 1);
  const auto moments = example().optimizer_state;
  CHECK(contains(said, hash_of(std::as_bytes(std::span(moments))).hex().c_str()));
  CHECK(contains(said, " and is "));
  bad = good; // a count that would ask for 16 GB and overflow a product
  const auto at = bad.find("\"parameters\": ");
  REQUIRE(at != std::string::npos);
  bad.replace(at + 14, 4, "9999");
  CHECK(contains(error_for(path, bad), "truncated or has bytes too many"));
  CHECK(error_for(path, good).empty());
}

TEST_CASE("a transformer's sizes are in the header as a JSON object, and come back from it") {
  const scratch_folder folder;
  REQUIRE(save(example(), folder.path / "a.ckpt").ok());
  CHECK(contains(read(folder.path / "a.ckpt"),
                 "\"model\": {\n  \"context\": 16,\n  \"dim\": 8,\n  \"heads\": 2,\n  \"layers\": "
                 "1,\n  \"vocabulary\": 256\n },"));
  const auto loaded = load_checkpoint(folder.path / "a.ckpt");
  REQUIRE(loaded.ok());
  CHECK(transformer_of(*loaded).value() == small);
}

TEST_CASE("a checkpoint that is no transformer, or whose description does not fit its tensors, is "
          "refused where a transformer is made") {
  auto c = example();
  CHECK(transformer_of(c).ok());
  c.model.clear();
  CHECK(contains(transformer_of(c).error(), "no layers, heads, dim, context and vocabulary"));
  c.model = R"({"context":16,"dim":8,"heads":2,"layers":1.5,"vocabulary":256})";
  CHECK(contains(transformer_of(c).error(), "that are whole numbers"));
  c.model = R"({"context":16,"dim":8,"heads":3,"layers":1,"vocabulary":256})";
  CHECK(contains(transformer_of(c).error(), "makes no sense: model: dim 8 is not a multiple"));
  c.model = R"({"context":16,"dim":16,"heads":2,"layers":1,"vocabulary":256})";
  CHECK(transformer_of(c).error() == "makes no sense: its tensors are not those of its model");
  c.workload = "quadratic";
  c.model.clear();
  c.tensors = one_tensor("weights", 5);
  CHECK(transformer_of(c).error() == "has quadratic: weights [5], which is no transformer");
}

TEST_CASE("a transformer's bottlenecks are in the description, and come back from a file") {
  const scratch_folder folder;
  const maxout_config maxout{1, 4};
  auto c = example();
  c.model = description_of(small, maxout);
  c.tensors = layout_of(small, maxout);
  c.parameters = initial_parameters(small, maxout, 1);
  c.optimizer_state.assign(state_bytes(c.optimizer, c.parameters.size()), std::byte{63});
  REQUIRE(save(c, folder.path / "a.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "a.ckpt");
  REQUIRE_MESSAGE(loaded.ok(), loaded.error());
  CHECK(loaded->parameters == c.parameters);
  CHECK(any_transformer_of(*loaded)->config == small);
  CHECK(any_transformer_of(*loaded)->maxout == maxout);
  CHECK(any_transformer_of(example())->maxout == maxout_config{});
  CHECK(transformer_of(*loaded).error() ==
        "has a transformer with bottlenecks (workload.maxout), which only training and 'shoal "
        "generate' know");
  // Neither goes on from the other.
  CHECK(continues(*loaded, c).ok());
  CHECK(continues(example(), c).error() ==
        "is of another model: it has transformer: context 16, dim 8, heads 2, layers 1, vocabulary "
        "256; the scenario has transformer: bottlenecks 1, context 16, dim 8, heads 2, layers 1, "
        "maxout 4, vocabulary 256");
  CHECK(contains(continues(*loaded, example()).error(), "it has transformer: bottlenecks 1"));
  c.model = description_of(small, {1, 2}); // the tensors of maxout 4
  CHECK(any_transformer_of(c).error() == "makes no sense: its tensors are not those of its model");
  c.model =
      R"({"bottlenecks":2,"context":16,"dim":8,"heads":2,"layers":1,"maxout":4,"vocabulary":256})";
  CHECK(contains(any_transformer_of(c).error(), "makes no sense: 2 bottlenecks"));
  c.model = R"({"bottlenecks":1,"context":16,"dim":8,"heads":2,"layers":1,"vocabulary":256})";
  CHECK(contains(any_transformer_of(c).error(), "makes no sense"));
}

TEST_CASE("any model's description is carried and compared, with any content") {
  const scratch_folder folder;
  checkpoint c;
  c.workload = "albert";
  c.model = R"({"experts":[1,2],"layers":12,"shared":true,"tokenizer":"sentencepiece 32000"})";
  c.tensors = one_tensor("weights", 2);
  c.optimizer.kind = kernels::optimizer_kind::sgd;
  c.parameters = {1, 2};
  REQUIRE(save(c, folder.path / "m.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "m.ckpt");
  REQUIRE_MESSAGE(loaded.ok(), loaded.error());
  CHECK(loaded->model == c.model);
  CHECK(continues(*loaded, c).ok());
  auto wanted = c;
  wanted.model = R"({"experts":[1,2],"layers":12,"shared":true,"tokenizer":"sentencepiece 16000"})";
  CHECK(continues(*loaded, wanted).error() ==
        "is of another model: it has albert: experts [1,2], layers 12, shared true, tokenizer "
        "sentencepiece 32000; "
        "the scenario has albert: experts [1,2], layers 12, shared true, tokenizer sentencepiece "
        "16000");
}

TEST_CASE("a header that asks for impossible sizes is refused, even with right hashes") {
  const scratch_folder folder;
  const auto path = folder.path / "h.ckpt";
  checkpoint c;
  c.workload = "quadratic";
  c.tensors = one_tensor("weights", 4);
  c.optimizer.kind = kernels::optimizer_kind::sgd;
  c.parameters = {1, 2, 3, 4};
  // A malicious author writes the same file with right hashes.
  const auto with = [&](const std::string& from, const std::string& to) {
    REQUIRE(save(c, path).ok());
    auto file = read(path);
    std::uint32_t size = 0;
    std::memcpy(&size, file.data() + 12, 4);
    auto header = file.substr(16, size);
    const auto at = header.find(from);
    REQUIRE(at != std::string::npos);
    header.replace(at, from.size(), to);
    size = static_cast<std::uint32_t>(header.size());
    auto head = file.substr(0, 16) + header;
    std::memcpy(head.data() + 12, &size, 4);
    head.resize((head.size() + 63) / 64 * 64);
    const auto values = file.substr(file.size() - 4 * 32 - 16, 16);
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const std::array<digest, 3> parts{hash_of(bytes(head)), hash_of(bytes(values)), hash_of({})};
    hasher all;
    all.add(bytes(head)).add(bytes(values)).add(std::span<const std::byte>{});
    for (const auto& each : parts) all.add(each);
    const auto last = all.finish();
    auto out = head + values;
    for (const auto& each : parts) out.append(reinterpret_cast<const char*>(each.bytes.data()), 32);
    out.append(reinterpret_cast<const char*>(last.bytes.data()), 32);
    return error_for(path, out);
  };
  CHECK(with("quadratic", "quadratic") == "");
  // These sizes are right only after wrapping around.
  const std::string shape = "\"shape\": [\n    4\n   ]";
  CHECK(
      contains(with(shape, "\"shape\": [-4, -1]"), "a shape that no tensor in this file can have"));
  CHECK(contains(with(shape, "\"shape\": [9223372036854775807, 9223372036854775807, 4]"),
                 "a shape that no tensor in this file can have"));
  CHECK(contains(with(shape, "\"shape\": [5]"), "a shape that no tensor in this file can have"));
  CHECK(contains(with(shape, "\"shape\": [3]"), "its parameters do not fit its tensors"));
  CHECK(contains(with("\"sgd\"", "\"sdg\""),
                 "has an optimizer that this program does not know: unknown optimizer 'sdg'"));
  // A description is null, or an object that is not too deep to be written again.
  CHECK(with("\"model\": null", "\"model\": {\"a\": 1}") == "");
  CHECK(with("\"model\": null,", "") == "");
  CHECK(contains(with("\"model\": null", "\"model\": [1]"),
                 "the description of its model is no JSON object"));
  const auto deep = std::string(100000, '[') + "1" + std::string(100000, ']');
  CHECK(contains(with("\"model\": null", "\"model\": {\"a\": " + deep + "}"),
                 "or one of too many levels"));
  const auto very_deep = std::string(1000000, '[') + "1" + std::string(1000000, ']');
  CHECK(contains(with("\"epoch\": 0", "\"epoch\": " + very_deep),
                 "a header that cannot be understood (no whole number: an array)"));
  // 2^62 floats are no bytes at all, modulo 2^64.
  CHECK(contains(with("\"samples\"",
                      "\"power_sgd\": {\"rank\": 1, \"values\": 4611686018427387904}, \"samples\""),
                 "its Q of PowerSGD is larger than the model"));
}

TEST_CASE("a state of any workload is a checkpoint") {
  const scratch_folder folder;
  checkpoint c;
  c.workload = "quadratic";
  c.tensors = one_tensor("weights", 5);
  c.optimizer.kind = kernels::optimizer_kind::sgd;
  c.parameters = {1, 2, 3, 4, 5};
  REQUIRE(save(c, folder.path / "q.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "q.ckpt");
  REQUIRE_MESSAGE(loaded.ok(), loaded.error());
  CHECK(loaded->workload == "quadratic");
  CHECK(loaded->parameters == c.parameters);
  CHECK(shape_text(*loaded) == "quadratic: weights [5]");
}

TEST_CASE(
    "training goes on only from the same model and optimizer; otherwise the message names both") {
  auto wanted = example();
  CHECK(continues(example(), wanted).ok());
  wanted.optimizer.learning_rate = 1;
  CHECK(continues(example(), wanted).ok());
  auto other = small;
  other.dim = 16;
  wanted.model = description_of(other);
  wanted.tensors = layout_of(other);
  CHECK(continues(example(), wanted).error() ==
        "is of another model: it has transformer: context 16, dim 8, heads 2, layers 1, vocabulary "
        "256; the scenario has transformer: context 16, dim 16, heads 2, layers 1, vocabulary 256");
  wanted = example();
  other = small;
  other.heads = 4; // the same shapes, another model
  wanted.model = description_of(other);
  CHECK(contains(continues(example(), wanted).error(),
                 "heads 2, layers 1, vocabulary 256; the scenario has transformer: context 16, dim "
                 "8, heads 4"));
  wanted = example();
  wanted.workload = "logistic";
  wanted.model.clear();
  wanted.tensors = one_tensor("weights", 7);
  CHECK(contains(continues(example(), wanted).error(), "the scenario has logistic: weights [7]"));
  wanted = example();
  wanted.optimizer.kind = kernels::optimizer_kind::sgd;
  wanted.optimizer.momentum = 0.9;
  CHECK(continues(example(), wanted).error() ==
        "is of another optimizer: it has adamw; the scenario has sgd with momentum");
  auto model = example();
  model.optimizer_state.clear();
  CHECK(contains(continues(model, example()).error(), "no optimizer state"));
}
