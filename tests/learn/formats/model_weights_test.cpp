#include "kernels/learn/formats/model_weights.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

constexpr const char* one_of_two = "model-00001-of-00002.safetensors";
constexpr const char* two_of_two = "model-00002-of-00002.safetensors";

struct folder_of_parts {
  scratch_folder here;
  folder_of_parts() {
    const std::vector<named_tensor> first{{"a", {2}, {1, 2}}, {"both", {1}, {3}}};
    const std::vector<named_tensor> second{{"b", {1, 2}, {4, 5}}, {"both", {1}, {6}}};
    REQUIRE(write_safetensors(here.path / one_of_two, first).ok());
    REQUIRE(write_safetensors(here.path / two_of_two, second).ok());
    index(std::string(R"({"metadata": {"total_size": 20}, "weight_map": {"a": ")") + one_of_two +
          R"(", "b": ")" + two_of_two + R"(", "both": ")" + two_of_two + "\"}}");
  }
  void index(const std::string& text) {
    std::ofstream(here.path / "model.safetensors.index.json") << text;
  }
  std::string error() {
    const auto opened = model_weights::open(here.path);
    if (opened.ok()) return "no error";
    auto text = opened.error();
    const auto folder = here.path.string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    return text;
  }
};

} // namespace

TEST_CASE("weights in parts: the index says which part has a tensor") {
  folder_of_parts f;
  CHECK(model_weights::are_in(f.here.path));
  const auto weights = model_weights::open(f.here.path);
  REQUIRE_MESSAGE(weights.ok(), (weights.ok() ? "" : weights.error()));
  CHECK(weights->files().size() == 2);
  CHECK(weights->tensors().size() == 4);
  CHECK(weights->has("a"));
  CHECK_FALSE(weights->has("c"));
  const std::vector<std::int64_t> two{2}, row{1, 2}, one{1};
  CHECK(weights->take("a", two)->values == std::vector<float>{1, 2});
  CHECK(weights->take("b", row)->values == std::vector<float>{4, 5});
  CHECK(weights->take("both", one)->values == std::vector<float>{6});
  CHECK(weights->take("c", one).error().ends_with("index.json' has no tensor 'c'"));
  CHECK(weights->take("a", one).error().find("shape [2]; the model needs [1]") !=
        std::string::npos);
}

TEST_CASE("weights in parts: a whole file counts instead of its index") {
  folder_of_parts f;
  const std::vector<named_tensor> all{{"a", {1}, {9}}};
  REQUIRE(write_safetensors(f.here.path / "model.safetensors", all).ok());
  const std::vector<std::int64_t> one{1};
  for (const auto& path : {f.here.path, f.here.path / "model.safetensors"}) {
    const auto weights = model_weights::open(path);
    REQUIRE(weights.ok());
    CHECK(weights->take("a", one)->values == std::vector<float>{9});
    CHECK_FALSE(weights->has("b"));
  }
}

TEST_CASE("weights in parts: a wrong index or part is refused with its name") {
  folder_of_parts f;
  const std::string name = "model: 'model.safetensors.index.json' ";
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"{", name + "is no index of weights ("},
           {"[]", name + "is no index of weights ("},
           {R"({"weight_map": 3})", name + "is no index of weights ("},
           {R"({"weight_map": {"a": 3}})", name + "is no index of weights ("},
           {R"({"weight_map": {}})", name + "names no tensor"},
           {R"({"weight_map": {"a": "../x.safetensors"}})",
            name + "places the tensor 'a' in something that is no file of this folder"},
           {R"({"weight_map": {"a": "absent.safetensors"}})",
            "safetensors: 'absent.safetensors' cannot be opened: No such file or directory"},
           {std::string(R"({"weight_map": {"a": ")") + two_of_two + "\"}}",
            name + "places the tensor 'a' in '" + two_of_two +
                "', which has none of that name; copy the files again"}}) {
    f.index(text);
    CAPTURE(text);
    CHECK(f.error().starts_with(expected));
  }
  std::filesystem::remove(f.here.path / "model.safetensors.index.json");
  CHECK_FALSE(model_weights::are_in(f.here.path));
  CHECK(f.error() ==
        "safetensors: 'model.safetensors' cannot be opened: No such file or directory");
}
