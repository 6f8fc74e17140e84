#include "kernels/learn/formats/safetensors.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data,
                               std::uint64_t announced = ~std::uint64_t{0}) {
  const std::uint64_t length = announced == ~std::uint64_t{0} ? header.size() : announced;
  std::vector<std::byte> out(8 + header.size() + data);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data; ++i) out[8 + header.size() + i] = static_cast<std::byte>(i);
  return out;
}

/// The error of a file with this header and so many bytes after it.
std::string error_of(const std::string& header, std::size_t data) {
  const auto read = safetensors::from_bytes(file_of(header, data), "f");
  return read ? "none" : read.error();
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   int begin, int end) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

} // namespace

TEST_CASE("safetensors: a written file has a padded header and reads back equal") {
  const scratch_folder here;
  const auto path = std::filesystem::path(here.path) / "m.safetensors";
  const std::vector<named_tensor> tensors{{"b", {2, 3}, {1, 2, 3, 4, 5, -6}},
                                          {"a", {}, {0.5f}},
                                          {"empty", {0, 4}, {}},
                                          {"long name", {1, 1, 2}, {std::ldexp(1.f, -149), -0.f}}};
  REQUIRE(write_safetensors(path, tensors, {{"format", "pt"}, {"note", "\xff"}}).ok());
  const auto text = contents_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(text.size() == 8 + length + 9 * sizeof(float));
  CHECK(!std::filesystem::exists(path.string() + ".partial"));

  const auto read = safetensors::open(path);
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(read->metadata().at("format") == "pt");
  REQUIRE(read->tensors().size() == 4);
  for (const auto& each : tensors) {
    const auto got = read->take(each.name, each.shape);
    REQUIRE(got.ok());
    REQUIRE(got->values.size() == each.values.size());
    for (std::size_t i = 0; i < each.values.size(); ++i)
      CHECK(std::bit_cast<std::uint32_t>(got->values[i]) ==
            std::bit_cast<std::uint32_t>(each.values[i]));
  }
  const std::int64_t wrong[] = {3, 2};
  CHECK(read->take("b", wrong).error() == "safetensors: '" + path.string() +
                                              "' has the tensor 'b' of shape [2, 3]; the model "
                                              "needs [3, 2]");
  CHECK(read->take("c", wrong).error().ends_with("has no tensor 'c'"));

  CHECK(write_safetensors("/nowhere/m", tensors).error() ==
        "safetensors: cannot create '/nowhere/m': No such file or directory");
}

TEST_CASE("safetensors: damaged files get an error that says where") {
  const auto a = tensor("a", "F32", "[2]", 0, 8), b = tensor("b", "U8", "[4]", 8, 12);
  CHECK(error_of("{" + a + "," + b + "}", 12) == "none");
  CHECK(error_of("{" + b + "," + a + "}   ", 12) == "none");
  CHECK(error_of("{" + a + "," + b + "}", 11) ==
        "safetensors: 'f' is truncated: its tensors have 12 bytes, and the file has 11 after its "
        "header; copy it again");
  CHECK(error_of("{" + a + "}", 9) == "safetensors: 'f' has 1 bytes after its last tensor; copy it "
                                      "again, or take another file");
  CHECK(error_of("{" + a + "," + tensor("b", "U8", "[2]", 10, 12) + "}", 12) ==
        "safetensors: 'f' has a hole of 2 bytes before tensor 'b'; take another file");
  CHECK(error_of("{" + a + "," + tensor("b", "U8", "[6]", 6, 12) + "}", 12) ==
        "safetensors: 'f' has tensors that overlap: 'a' and 'b'; take another file");
  CHECK(error_of("{" + tensor("a", "F32", "[3]", 0, 8) + "}", 8) ==
        "safetensors: 'f' is no safetensors file: its tensor 'a' has 8 bytes; its shape [3] of F32 "
        "needs 12; take another file");
  CHECK(error_of("{" + tensor("a", "F33", "[2]", 0, 8) + "}", 8) ==
        "safetensors: 'f' is no safetensors file: its tensor 'a' has the unknown dtype 'F33'; take "
        "another file");
  CHECK(error_of("{" + a + "," + a + "}", 8) ==
        "safetensors: 'f' is no safetensors file: it has the tensor 'a' twice");
  CHECK(error_of("{" + tensor("a", "F32", "[-2]", 0, 8) + "}", 8).find("no memory") !=
        std::string::npos);
  CHECK(error_of("{" + tensor("a", "F32", "[4294967296,4294967296]", 0, 8) + "}", 8)
            .find("a shape that no memory can hold") != std::string::npos);
  CHECK(error_of("{" + tensor("a", "F32", "[2]", 8, 0) + "}", 8).find("ends before it begins") !=
        std::string::npos);
  CHECK(error_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8).find("data_offsets") !=
        std::string::npos);
  CHECK(error_of(R"({"a":{"dtype":"F32","shape":[1e73],"data_offsets":[0,8]}})", 8)
            .find("no whole number") != std::string::npos);
  CHECK(error_of("[1]", 0).find("does not begin with '{'") != std::string::npos);
  CHECK(error_of("{\"a\"", 0).find("cannot be understood") != std::string::npos);
  CHECK(error_of(R"({"__metadata__":{"a":1}})", 0).find("cannot be understood") !=
        std::string::npos);

  const auto huge = safetensors::from_bytes(file_of("{}", 0, 100'000'000'000), "f");
  CHECK(huge.error() == "safetensors: 'f' is no safetensors file: its header would have "
                        "100000000000 bytes; at most 100000000 are read");
  const auto cut = safetensors::from_bytes(file_of("{}", 0, 500), "f");
  CHECK(cut.error() == "safetensors: 'f' is truncated in its header: 500 bytes are announced, and "
                       "the file has 10; copy it again");
  CHECK(safetensors::open("/nowhere").error() ==
        "safetensors: '/nowhere' cannot be opened: No such file or directory");
  CHECK(safetensors::open("/").error() == "safetensors: '/' is not a file");
}

TEST_CASE("safetensors: halves and doubles become floats exactly") {
  // 1, -2, 65504, the least subnormal number, infinity and NaN, in binary16 and bfloat16.
  const std::uint16_t half[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x7e00, 0x8000};
  const float values[] = {1, -2, 65504, std::ldexp(1.f, -24), INFINITY, NAN, -0.f};
  auto file = file_of(
      "{" + tensor("h", "F16", "[7]", 0, 14) + "," + tensor("b", "BF16", "[2]", 14, 18) + "," +
          tensor("d", "F64", "[1]", 18, 26) + "," + tensor("i", "I8", "[2]", 26, 28) + "}",
      28);
  auto* data = file.data() + file.size() - 28;
  std::memcpy(data, half, 14);
  const std::uint16_t brain[] = {0x3f80, 0xc2f7};
  std::memcpy(data + 14, brain, 4);
  const double third = 1.0 / 3;
  std::memcpy(data + 18, &third, 8);
  const auto read = safetensors::from_bytes(file, "f");
  REQUIRE(read.ok());
  const auto got = read->read_floats(*read->find("h"));
  REQUIRE(got.ok());
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(std::isnan((*got)[i]) == std::isnan(values[i]));
    if (!std::isnan(values[i])) CHECK((*got)[i] == values[i]);
  }
  CHECK(std::signbit((*got)[6]));
  CHECK(*read->read_floats(*read->find("b")) == std::vector<float>{1, -123.5});
  CHECK(*read->read_floats(*read->find("d")) == std::vector<float>{static_cast<float>(third)});
  CHECK(read->read_floats(*read->find("i")).error() ==
        "safetensors: 'f' has the tensor 'i' of dtype I8; weights are read from F64, F32, F16 and "
        "BF16");
}

TEST_CASE(
    "safetensors: a file that another program wrote keeps its bytes when it is written again") {
  SHOAL_NEEDS_DATA(path, "stories260K/hf/model.safetensors");
  const auto read = safetensors::open(path);
  REQUIRE_MESSAGE(read.ok(), read.error());
  std::vector<named_tensor> tensors;
  for (const auto& each : read->tensors()) {
    auto got = read->take(each.name, each.shape);
    REQUIRE(got.ok());
    tensors.push_back(*std::move(got));
  }
  const scratch_folder here;
  const auto copy = std::filesystem::path(here.path) / "copy";
  REQUIRE(write_safetensors(copy, tensors, read->metadata()).ok());
  const auto again = safetensors::open(copy);
  REQUIRE(again.ok());
  REQUIRE(again->tensors().size() == tensors.size());
  for (const auto& each : tensors) CHECK(again->take(each.name, each.shape)->values == each.values);
}

TEST_CASE("safetensors: a reader of 20 lines in another language reads the file") {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0)
    SHOAL_SKIP("no python3 to read the file");
  const scratch_folder here;
  const std::filesystem::path folder(here.path);
  std::vector<named_tensor> tensors{{"encoder.weight", {3, 5}, {}}, {"bias", {5}, {}}};
  for (int i = 0; i < 15; ++i) tensors[0].values.push_back(static_cast<float>(i) / 7);
  for (int i = 0; i < 5; ++i) tensors[1].values.push_back(static_cast<float>(-i) / 3);
  REQUIRE(write_safetensors(folder / "m.safetensors", tensors).ok());
  std::ofstream(folder / "read.py") << R"(import json, struct, sys
data = open(sys.argv[1], 'rb').read()
n = struct.unpack('<Q', data[:8])[0]
assert n % 8 == 0 and data[8:9] == b'{', n
header = json.loads(data[8:8 + n])
assert header.pop('__metadata__') == {'format': 'pt'}
end = 0
for name, of in sorted(header.items(), key=lambda each: each[1]['data_offsets']):
    begin, after = of['data_offsets']
    count = 1
    for extent in of['shape']:
        count *= extent
    assert begin == end and after - begin == 4 * count and of['dtype'] == 'F32', of
    values = struct.unpack('<%df' % count, data[8 + n + begin:8 + n + after])
    print(name, of['shape'], ' '.join(struct.pack('<f', v).hex() for v in values))
    end = after
assert 8 + n + end == len(data)
)";
  const auto command = "python3 " + (folder / "read.py").string() + " " +
                       (folder / "m.safetensors").string() + " > " + (folder / "out").string();
  REQUIRE(std::system(command.c_str()) == 0);
  std::string expected;
  for (const auto& each : tensors) {
    expected += each.name + " " + to_text(each.shape);
    for (const auto value : each.values) {
      char hex[10];
      std::snprintf(hex, sizeof(hex), " %08x",
                    __builtin_bswap32(std::bit_cast<std::uint32_t>(value)));
      expected += hex;
    }
    expected += "\n";
  }
  CHECK(contents_of(folder / "out") == expected);
}
