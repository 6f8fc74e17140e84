// kernels/learn/model_file: a model with its tokenizer.
#include "kernels/learn/model_file.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

#include <cstring>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// A tokenizer file with the 259 special tokens and these.
std::string file_of(const std::vector<std::pair<std::string, float>>& pieces) {
  std::string out(4, '\0');
  const auto add = [&](const std::string& piece, float score) {
    const auto length = static_cast<std::int32_t>(piece.size());
    char head[8];
    std::memcpy(head, &score, 4);
    std::memcpy(head + 4, &length, 4);
    out.append(head, 8).append(piece);
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special, 0);
  constexpr const char* digits = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i) add(std::string("<0x") + digits[i / 16] + digits[i % 16] + ">", 0);
  for (const auto& [piece, score] : pieces) add(piece, score);
  return out;
}

} // namespace

TEST_CASE("the published text is the decoded tokens and its beginning encodes to them") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const auto model = load_served_model(file, {});
  REQUIRE_MESSAGE(model.ok(), model.error());
  CHECK(model->name == "stories260K");
  CHECK(model->stop == 1);
  const auto known = test::published(fixture);
  const auto ids = known["greedy_ids"].get<std::vector<token_id>>();
  CHECK(model->codec->decode(ids) == known["greedy_text"].get<std::string>());
  CHECK(model->encode("Once upon a time") == std::vector<token_id>(ids.begin(), ids.begin() + 5));
  CHECK(model->encode("") == std::vector<token_id>{1});
  const std::string any = "caf\xC3\xA9 \xF0\x9F\x98\x80!";
  CHECK(model->codec->decode(model->encode(any)) == any);
}

TEST_CASE("the same model from a folder of Hugging Face has the same weights") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(tokens, "stories260K/tok512.bin");
  SHOAL_NEEDS_DATA(folder, "stories260K/hf");
  const auto one = load_served_model(file, {}), other = load_served_model(folder, tokens);
  REQUIRE_MESSAGE(one.ok(), one.error());
  REQUIRE_MESSAGE(other.ok(), other.error());
  CHECK(one->identity() == other->identity());
}

TEST_CASE("a tokenizer that does not belong to the model is refused with the reason") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  const scratch_folder here;
  const auto other = here.write("other.bin", file_of({{" ", 0}}));
  CHECK(load_served_model(file, other).error() ==
        "tokenizer: '" + other + "' has 260 tokens; the model has 512");
  const auto copy = here.path / "stories.bin";
  std::filesystem::copy_file(file, copy);
  CHECK(load_served_model(copy, {}).error() ==
        "model: no tokenizer in '" + here.path.string() +
            "': there is no tok512.bin and no tokenizer.bin");
}
