#include "lmdb_pages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "pif/base/handle.h"

namespace pif::kv {
namespace {

// The layout of LMDB 0.9's data file (its "data version 1") on 64-bit little-endian machines, from lmdb's mdb.c.
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
constexpr std::uint16_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04;
constexpr std::uint16_t kBigData = 0x01, kSubData = 0x02;  // of nodes
constexpr unsigned kDepthMax = 32;                         // mdb.c: CURSOR_STACK

struct PageHeader {
  std::uint64_t number;
  std::uint16_t pad;
  std::uint16_t flags;
  std::uint16_t lower;  // of an overflow page: with `upper`, how many pages
  std::uint16_t upper;
};
static_assert(sizeof(PageHeader) == 16);

struct NodeHeader {
  std::uint16_t low, high, flags, key_bytes;
};
static_assert(sizeof(NodeHeader) == 8);

struct Tree {
  std::uint32_t pad;
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
static_assert(sizeof(Tree) == 48);

struct Meta {
  PageHeader header;
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;
  std::uint64_t map_bytes;
  Tree trees[2];  // free pages; tables by name. The page size is in the first one's `pad`
  std::uint64_t last_page;
  std::uint64_t transaction;
};
static_assert(sizeof(Meta) == 16 + 24 + 96 + 16);

class Walker {
 public:
  explicit Walker(int fd) : fd_(fd) {}

  bool run() {
    Meta first{}, second{};
    if (!read(0, &first, sizeof(first))) return false;
    page_bytes_ = first.trees[0].pad;
    if (page_bytes_ < 512 || page_bytes_ > 65536) return false;
    struct stat about {};
    if (::fstat(fd_, &about) != 0) return false;
    pages_left_ = static_cast<std::uint64_t>(about.st_size) / page_bytes_ + 1;
    if (!read(page_bytes_, &second, sizeof(second))) return false;
    const Meta& newest = second.transaction > first.transaction ? second : first;
    return tree(newest.trees[0]) && tree(newest.trees[1]);
  }

 private:
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    return ::pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  bool tree(const Tree& tree) { return tree.root == kNoPage || page(tree.root, 0); }

  bool page(std::uint64_t number, unsigned depth) {
    if (depth > kDepthMax || pages_left_-- == 0) return false;  // a page met twice: one can lead to itself
    std::vector<char> bytes(page_bytes_);
    if (!read(number * page_bytes_, bytes.data(), bytes.size())) return false;
    PageHeader header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.number != number || header.lower < sizeof(header) || header.lower > page_bytes_) return false;
    if ((header.flags & (kBranch | kLeaf)) == 0) return false;
    for (std::size_t at = sizeof(header); at + 2 <= header.lower; at += 2) {
      std::uint16_t offset = 0;
      std::memcpy(&offset, bytes.data() + at, sizeof(offset));
      if (!node(bytes, offset, (header.flags & kBranch) != 0, depth)) return false;
    }
    return true;
  }

  bool node(const std::vector<char>& bytes, std::size_t offset, bool branch, unsigned depth) {
    NodeHeader header{};
    if (offset + sizeof(header) > bytes.size()) return false;
    std::memcpy(&header, bytes.data() + offset, sizeof(header));
    if (branch) {
      const std::uint64_t child = header.low | std::uint64_t{header.high} << 16 | std::uint64_t{header.flags} << 32;
      return page(child, depth + 1);
    }
    const std::size_t data = offset + sizeof(header) + header.key_bytes;
    if ((header.flags & kBigData) != 0) {
      std::uint64_t first = 0;
      if (data + sizeof(first) > bytes.size()) return false;
      std::memcpy(&first, bytes.data() + data, sizeof(first));
      return overflow(first);
    }
    if ((header.flags & kSubData) != 0) {
      Tree sub{};
      if (data + sizeof(sub) > bytes.size()) return false;
      std::memcpy(&sub, bytes.data() + data, sizeof(sub));
      return tree(sub);
    }
    return true;
  }

  bool overflow(std::uint64_t first) const {
    PageHeader header{};
    if (!read(first * page_bytes_, &header, sizeof(header))) return false;
    if (header.number != first || (header.flags & kOverflow) == 0) return false;
    const std::uint64_t pages = header.lower | std::uint64_t{header.upper} << 16;
    char last = 0;
    return pages > 0 && read((first + pages) * page_bytes_ - 1, &last, 1);
  }

  int fd_;
  std::uint64_t page_bytes_ = 0;
  std::uint64_t pages_left_ = 0;  // of the file, to be met
};

}  // namespace

Result<bool> all_pages_present(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot read " + path);
  return Walker(fd.get()).run();
}

}  // namespace pif::kv
