// `shoal tokenizer` and `shoal model` as somebody meets them who has a text or a model.
#include "tests/support/program.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace {

struct desk : shoal::scratch_folder {
  shoal::program_outcome run(const std::string& arguments) const {
    return shoal::run_program(path, arguments);
  }
  /// A tokenizer of a text of this project.
  void train() const {
    const auto out =
        run(std::string("tokenizer train '") + SHOAL_SOURCE + "/README.md' --vocab 300 -o t.json");
    REQUIRE_MESSAGE(out.status == 0, out.text);
    CHECK(out.has("t.json: Unigram, 300 tokens\n"));
    CHECK(out.has(" wanted: "));
  }
};

} // namespace

TEST_CASE("tokenizer: a trained vocabulary encodes and decodes, the same each time") {
  const desk here;
  here.train();
  const auto text = shoal::contents_of(here.path / "t.json");
  here.train();
  CHECK(shoal::contents_of(here.path / "t.json") == text);
  const auto ids = here.run("tokenizer encode t.json 'A run of peers.'");
  CHECK(ids.status == 0);
  CHECK(here.run("tokenizer decode t.json " + ids.text.substr(0, ids.text.size() - 1)).text ==
        "a run of peers.\n");
  const auto whole = here.run("tokenizer encode t.json --special --pieces '[MASK] x'");
  CHECK(whole.has("[CLS] [MASK] \u2581"));
  CHECK(whole.has(" [SEP]\n"));
  const auto info = here.run(std::string("tokenizer info t.json '") + SHOAL_SOURCE + "/README.md'");
  CHECK(info.status == 0);
  CHECK(info.has("Unigram"));
  CHECK(info.has("<unk> 1"));
  CHECK(info.has("bytes for each token"));
  CHECK(nlohmann::json::parse(here.run("tokenizer info t.json --json").text)["tokens"] == "300");
}

TEST_CASE("tokenizer: wrong input gets one line that says what to do") {
  const desk here;
  CHECK(here.run("tokenizer info nowhere.json").text ==
        "error: tokenizer: 'nowhere.json' cannot be opened: No such file or directory\n");
  here.write("few.txt", "a b a b");
  const auto few = here.run("tokenizer train few.txt --vocab 100");
  CHECK(few.status == 1);
  CHECK(few.has("error: cannot train a tokenizer: the texts give only "));
  CHECK(here.run("tokenizer decode bytes 300").text ==
        "error: '300' is no token of 'bytes': tokens are numbers from 0 to 255\n");
  CHECK(here.run("tokenizer encode bytes ab").text == "97 98\n");
  CHECK(here.run("tokenizer encode bytes --special ab").status == 2);
  CHECK(here.run("tokenizer encrypt").has("the commands are train, encode, decode, info"));
}

TEST_CASE("model: files of models are described, and parts that do not agree are errors") {
  const desk here;
  CHECK(here.run("model info nowhere").text == "error: 'nowhere' does not exist\n");
  here.write("x.txt", "text");
  CHECK(here.run("model info x.txt").has("is no model: give a run directory"));
  std::filesystem::create_directory(here.path / "hf");
  here.write("hf/config.json", R"({"model_type":"gpt2","n_embd":8,"n_head":2,"n_layer":1})");
  const auto alone = here.run("model info hf");
  CHECK(alone.status == 1);
  CHECK(alone.has("error: 'hf' has neither model.safetensors nor model.safetensors.index.json\n"));
}

TEST_CASE("model: published models are described") {
  SHOAL_NEEDS_DATA(stories, "stories260K/hf");
  const desk here;
  const auto out = here.run("model info '" + stories.string() + "'");
  CHECK(out.status == 0);
  CHECK(out.has("llama"));
  CHECK(out.has("260032 in 47 tensors\n"));
  const auto bin = here.run("model info '" + (stories.parent_path() / "stories260K.bin").string() +
                            "' --json --tensors");
  CHECK(bin.status == 0);
  CHECK(nlohmann::json::parse(bin.text)["parameters"] == 260032);
  CHECK(nlohmann::json::parse(bin.text)["list"].size() == 47);
}
