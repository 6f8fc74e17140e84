#include "scenarios/observe/json_lines.hpp"

#include "kernels/base/check.hpp"

#include <zstd.h>

#include <string>
#include <vector>

namespace shoal::scenarios {

struct json_lines::compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<char> out = std::vector<char>(ZSTD_CStreamOutSize());
  std::string pending; // lines that wait until a call of the compressor is worth it

  compressor() { SHOAL_CHECK(context != nullptr, "no memory for zstd"); }
  ~compressor() { ZSTD_freeCCtx(context); }
  compressor(const compressor&) = delete;

  void run(output_file& file, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{pending.data(), pending.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer room{out.data(), out.size(), 0};
      left = ZSTD_compressStream2(context, &room, &in, how);
      SHOAL_CHECK(!ZSTD_isError(left), "zstd refuses its own stream");
      file.write({out.data(), room.pos});
    } while (how == ZSTD_e_continue ? in.pos < in.size : left != 0);
    pending.clear();
  }
};

json_lines::json_lines(std::unique_ptr<output_file> file)
    : file_(std::move(file)), zstd_(std::make_unique<compressor>()) {}

json_lines::~json_lines() = default;

void json_lines::line(std::string_view text) {
  zstd_->pending.append(text).push_back('\n');
  if (zstd_->pending.size() > 65536) zstd_->run(*file_, ZSTD_e_continue);
}

void json_lines::flush() {
  zstd_->run(*file_, ZSTD_e_flush);
  file_->flush();
}

result<void> json_lines::close() {
  zstd_->run(*file_, ZSTD_e_end);
  return file_->commit();
}

} // namespace shoal::scenarios
