// Event files for TensorBoard. A file is a sequence of records; a record is
//   length (uint64) | masked CRC-32C of the length | an Event message | masked CRC-32C of the
//   message
// in little-endian order. The mask of a CRC c is rotate_right(c, 15) + 0xa282ead8.
// Columns of metrics.csv are scalars whose step is the epoch; the wall time is the time of the run.
// run.yaml and summary.json are texts.
// Source: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto and tensor.proto (numbers of fields).
#include "scenarios/export/crc32c.hpp"
#include "scenarios/export/export_formats.hpp"
#include "scenarios/export/protobuf.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>

#include <bit>
#include <fstream>
#include <string>
#include <string_view>

namespace shoal::scenarios {

// A format may name its parts as other formats name theirs.
namespace tensorboard_format_parts {
namespace {

constexpr const char* file_name = "events.out.tfevents.0000000000.shoal";

class event_file {
public:
  event_file() { add(event(0, 0).bytes(3, "brain.Event:2")); }

  void scalar(double seconds, std::uint64_t step, const std::string& tag, double value) {
    protobuf_message one, all;
    one.bytes(1, tag).real32(2, static_cast<float>(value));
    add(event(seconds, step).inner(5, all.inner(1, one)));
    ++scalars;
  }

  void text(const std::string& tag, const std::string& content) {
    protobuf_message plugin, metadata, shape, dimension, tensor, one, all;
    constexpr std::uint64_t string_type = 7;
    shape.inner(2, dimension.varint(1, 1));
    tensor.varint(1, string_type).inner(2, shape).bytes(8, content);
    metadata.inner(1, plugin.bytes(1, "text"));
    one.bytes(1, tag).inner(8, tensor).inner(9, metadata);
    add(event(0, 0).inner(5, all.inner(1, one)));
  }

  std::string bytes;
  std::uint64_t scalars = 0;

private:
  static protobuf_message event(double seconds, std::uint64_t step) {
    protobuf_message out;
    out.real(1, seconds).varint(2, step);
    return out;
  }

  void number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  }

  void checksum(std::string_view of) { number(std::rotr(crc32c(of), 15) + 0xa282ead8U, 4); }

  void add(const protobuf_message& message) {
    const auto begin = bytes.size();
    number(message.text().size(), 8);
    checksum(std::string(bytes, begin));
    bytes += message.text();
    checksum(message.text());
  }
};

/// Writes a file. If the file holds the beginning of `bytes` already, the rest is appended:
/// TensorBoard reads on where it was.
result<void> write_further(const std::filesystem::path& path, std::string_view bytes) {
  const auto before = read_file(path);
  if (!before || !bytes.starts_with(*before)) return write_file(path, bytes);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << bytes.substr(before->size());
  if (out.flush()) return {};
  return failure{fmt::format("cannot write '{}'", path.string())};
}

result<std::string> write(const recorded_run& run, const std::filesystem::path& to) {
  event_file out;
  std::size_t epoch = 0;
  while (epoch < run.metrics.columns.size() && run.metrics.columns[epoch] != "epoch") ++epoch;
  for (const auto& row : run.metrics.rows)
    for (std::size_t i = 1; i < row.size(); ++i)
      if (i != epoch && row[0] && row[i]) {
        const double step = epoch < row.size() ? row[epoch].value_or(0) : 0;
        out.scalar(*row[0], static_cast<std::uint64_t>(step), "run/" + run.metrics.columns[i],
                   *row[i]);
      }
  // The texts come last: a file that is written again while the run goes on keeps its beginning.
  for (const char* name : {"run.yaml", "summary.json"})
    if (const auto content = read_file(run.directory / name))
      out.text(name, fmt::format("```\n{}\n```", *content));
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return failure{fmt::format("'{}' cannot be made: {}", to.string(), error.message())};
  if (auto written = write_further(to / file_name, out.bytes); !written)
    return failure{written.error()};
  return fmt::format("{} scalars; tensorboard --logdir shows them", out.scalars);
}

} // namespace
} // namespace tensorboard_format_parts

export_format tensorboard_format() {
  using namespace tensorboard_format_parts;
  return {"tensorboard", "DIR", "event files for TensorBoard: metrics over epochs, and texts",
          "tensorboard", write};
}

} // namespace shoal::scenarios
