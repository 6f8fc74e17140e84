// kernels/learn/text_file: every format gives the same text, and a cut or changed packed file gives
// an error with its place.
#include "kernels/base/rng.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/learn/text_file.hpp"
#include "tests/support/scratch_folder.hpp"

#include <brotli/encode.h>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace shoal;
using namespace shoal::learn;
namespace fs = std::filesystem;

namespace {

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string brotli(const std::string& text) {
  std::string out(BrotliEncoderMaxCompressedSize(text.size()) + 16, '\0');
  std::size_t size = out.size();
  REQUIRE(BrotliEncoderCompress(5, 22, BROTLI_MODE_TEXT, text.size(),
                                reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                                reinterpret_cast<std::uint8_t*>(out.data())));
  out.resize(size);
  return out;
}

/// A text of words, so that it packs, and longer than several blocks of the reader.
std::string much_text() {
  auto draws = stream(3, "text_file_test");
  std::string out;
  while (out.size() < 500'000)
    out += std::to_string(draws.below(1000)) + (draws.below(9) == 0 ? "\n" : " ");
  return out + "\n";
}

std::string as_json_lines(const std::string& text) {
  std::string out;
  std::size_t from = 0;
  for (auto end = text.find('\n'); end != std::string::npos;
       from = end + 1, end = text.find('\n', from))
    out += nlohmann::json{{"id", from}, {"text", text.substr(from, end - from)}}.dump() + "\n";
  return out;
}

std::string read(const std::string& path, std::uint64_t at_most = 1 << 24,
                 const std::string& field = "text") {
  const auto bytes = read_text_file(path, field, at_most);
  if (!bytes) return "error: " + bytes.error();
  return {bytes->begin(), bytes->end()};
}

} // namespace

TEST_CASE("a file's endings give its format") {
  using packing = text_format::packing;
  CHECK(format_of("a.txt") == text_format{packing::none, false});
  CHECK(format_of("a.jsonl") == text_format{packing::none, true});
  CHECK(format_of("a.txt.zst") == text_format{packing::zstd, false});
  CHECK(format_of("a.jsonl.zst") == text_format{packing::zstd, true});
  CHECK(format_of("a.jsonl.br") == text_format{packing::brotli, true});
  CHECK(format_of("br") == text_format{packing::none, false});
}

TEST_CASE("a text is the same text in every format") {
  scratch_folder in;
  const auto text = much_text();
  const auto lines = as_json_lines(text);
  CHECK(read(in.write("a.txt", text)) == text);
  CHECK(read(in.write("a.txt.zst", zstd(text))) == text);
  CHECK(read(in.write("a.txt.br", brotli(text))) == text);
  CHECK(read(in.write("a.jsonl", lines)) == text);
  CHECK(read(in.write("a.jsonl.zst", zstd(lines))) == text);
  CHECK(read(in.write("a.jsonl.br", brotli(lines))) == text);
  // Several frames are one text. The last line need not end, and blank lines are skipped.
  CHECK(read(in.write("two.zst", zstd(text) + zstd("more\n"))) == text + "more\n");
  CHECK(read(in.write("b.jsonl", "\n{\"text\": \"a\\u00e9\"}\r\n  \n{\"text\": \"b\"}")) ==
        "a\xc3\xa9\nb\n");
  CHECK(read(in.write("c.jsonl", "{\"text\": 1, \"body\": \"b\"}"), 1 << 20, "body") == "b\n");
  CHECK(read(in.write("empty.zst", "")).empty());
}

TEST_CASE("a packed file that is cut anywhere is an error with its place") {
  scratch_folder in;
  const auto text = much_text();
  for (const auto& [name, packed] :
       {std::pair{"a.zst", zstd(text)}, std::pair{"a.br", brotli(text)}}) {
    REQUIRE(read(in.write(name, packed)) == text);
    auto draws = stream(4, "text_file_test");
    for (int i = 0; i < 30; ++i) {
      const auto keep = i == 0 ? packed.size() - 1 : 1 + draws.below(packed.size() - 1);
      const auto said = read(in.write(name, packed.substr(0, keep)));
      INFO(name << " of " << packed.size() << " bytes cut to " << keep << ": "
                << said.substr(0, 200));
      CHECK(said.starts_with("error: data: '"));
      CHECK(said.find(name) != std::string::npos);
      CHECK(said.find("truncated") != std::string::npos);
      CHECK(said.find("at byte " + std::to_string(keep)) != std::string::npos);
    }
  }
}

TEST_CASE("a packed file with other bytes in it is an error, or another text of at most the "
          "allowed size") {
  scratch_folder in;
  const auto text = much_text();
  for (const auto& [name, packed] :
       {std::pair{"a.zst", zstd(text)}, std::pair{"a.br", brotli(text)}}) {
    auto draws = stream(5, "text_file_test");
    int errors = 0;
    for (int i = 0; i < 60; ++i) {
      auto bad = packed;
      bad[i == 0 ? 0 : draws.below(bad.size())] ^= static_cast<char>(1 + draws.below(255));
      const auto said = read(in.write(name, bad), 600'000);
      errors += said.starts_with("error: data: '") ? 1 : 0;
      CHECK(said.size() <= 600'000);
    }
    CHECK(errors > 10);
  }
  CHECK(read(in.write("b.zst", "no zstd at all")).find("corrupt zstd data") != std::string::npos);
  CHECK(read(in.write("b.br", brotli("text") + "x")).find("behind the end of the brotli data") !=
        std::string::npos);
}

TEST_CASE("the size of an unpacked small file is bounded before it is in memory") {
  scratch_folder in;
  const std::string zeros(50'000'000, '0');
  for (const auto& path : {in.write("bomb.zst", zstd(zeros)), in.write("bomb.br", brotli(zeros))}) {
    const auto said = read(path, 1'000'000);
    CHECK(said.find("larger than its limit") != std::string::npos);
  }
  CHECK(read(in.write("a.txt", "12345"), 5) == "12345");
  CHECK(read(in.write("a.txt", "123456"), 5).find("larger than its limit") != std::string::npos);
}

TEST_CASE("invalid JSON lines are an error that names the line") {
  scratch_folder in;
  const auto error = [&](const std::string& text) { return read(in.write("a.jsonl", text)); };
  CHECK(error("{\"text\": \"a\"}\n[1]\n").find("line 2 is no JSON object") != std::string::npos);
  CHECK(error("{\"text\": \"a\"}\n{\"body\": \"b\"}\n").find("line 2 has no field 'text'") !=
        std::string::npos);
  CHECK(error("{\"text\": 7}\n").find("the field 'text' of line 1 is no text") !=
        std::string::npos);
  CHECK(error("{\"text\": \"a\"}\n{\"text\": \"b")
            .find("line 2 is no JSON object (is the file truncated?)") != std::string::npos);
}

TEST_CASE("a corpus of packed files is that of the plain ones") {
  scratch_folder plain, packed;
  const auto text = much_text();
  plain.write("a", text);
  packed.write("a.zst", zstd(text));
  const text_options options{.context = 32, .seed = 9};
  const auto a = text_corpus::load(std::vector<std::string>{plain.path.string()}, options);
  const auto b = text_corpus::load(std::vector<std::string>{packed.path.string()}, options);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  for (std::uint64_t i : {0u, 1u, 999u, 123456u}) CHECK(a->sample(i) == b->sample(i));
  packed.write("a.zst", zstd(text).substr(0, 1000));
  const auto cut = text_corpus::load(std::vector<std::string>{packed.path.string()}, options);
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().find("a.zst': is truncated") != std::string::npos);
}
