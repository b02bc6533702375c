#include "files/byte_view.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "transfer/header.h"

namespace pif::cli {
namespace {

constexpr std::size_t kFirstPiece = 64u << 10, kLargestPiece = 4u << 20;

std::size_t next_piece(std::size_t piece) { return std::min(piece * 2, kLargestPiece); }

}  // namespace

Result<ByteView> ByteView::open(Client& client, const std::string& path) {
  PIF_TRY_VALUE(File file, client.open(path));
  PIF_TRY_VALUE(const FileLength file_length, file.file_length());
  const auto header = file.attributes().find(std::string(kHeaderAttribute));
  std::string bytes = header == file.attributes().end() ? "" : header->second;
  return ByteView(std::move(file), std::move(bytes), file_length);
}

Status ByteView::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset < header_.size()) {
    const std::size_t count = std::min<std::size_t>(header_.size() - offset, out.size());
    std::memcpy(out.data(), header_.data() + offset, count);
    out = out.subspan(count);
    offset += count;
  }
  if (out.empty()) return {};
  PIF_TRY_VALUE(const std::size_t got, file_.pread(out, offset - header_.size()));
  if (got == out.size()) return {};
  return fail(Code::kStaleFile, "the file became shorter while it was read");
}

Status ByteView::for_each_piece(Range bytes, const std::function<Result<More>(std::span<const std::byte>)>& visit) {
  std::vector<std::byte> buffer;
  std::size_t piece = kFirstPiece;
  for (std::uint64_t at = bytes.begin; at < bytes.end; at += buffer.size(), piece = next_piece(piece)) {
    buffer.resize(std::min<std::uint64_t>(piece, bytes.end - at));
    PIF_TRY(read(at, buffer));
    PIF_TRY_VALUE(const More more, visit(buffer));
    if (more == More::kNo) break;
  }
  return {};
}

Status ByteView::for_each_piece_back(Range bytes,
                                     const std::function<Result<More>(std::span<const std::byte>)>& visit) {
  std::vector<std::byte> buffer;
  std::size_t piece = kFirstPiece;
  for (std::uint64_t end = bytes.end; end > bytes.begin; end -= buffer.size(), piece = next_piece(piece)) {
    buffer.resize(std::min<std::uint64_t>(piece, end - bytes.begin));
    PIF_TRY(read(end - buffer.size(), buffer));
    PIF_TRY_VALUE(const More more, visit(buffer));
    if (more == More::kNo) break;
  }
  return {};
}

}  // namespace pif::cli
