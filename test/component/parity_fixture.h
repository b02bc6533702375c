// Members' components with known rows, and the parity of them.
#pragma once

#include "component/fixture.h"
#include "pif/component/parity.h"

namespace pif::component::test {

struct ParityFixture {
  ParityFixture(const Format& format, std::size_t count) {
    shape.file = FileId(12);
    shape.format = format;
    for (std::size_t i = 0; i < count; ++i) shape.offsets.push_back(static_cast<std::uint32_t>(count - 1 - i));
    parity = must(open_parity(*storage, path, OpenMode::kCreate));
  }

  // Adds a member's component with these rows. All members are added before anything else is done.
  void add(std::vector<Bytes> rows) {
    const Shape of = Shape::of(shape.file, shape.format, 1);
    auto& member = members.emplace_back(std::make_unique<Member>());
    member->files = must(open_files(*storage, member_path(members.size() - 1), shape.format, OpenMode::kCreate));
    Writer writer(of, {}, member->files);
    for (Row row = 0; row < rows.size(); ++row) {
      const auto length = static_cast<std::uint32_t>(rows[row].size());
      if (shape.format.is_fixed())
        must(writer.write_rows(row, 1, {rows[row].data(), shape.format.record_length},
                               length == shape.format.record_length ? 0 : length));
      else
        must(writer.append_rows(std::span(&length, 1), rows[row]));
    }
    member->rows = std::move(rows);
    member->reader = std::make_unique<Reader>(of, must(writer.finish()), member->files);
    member->source = make_row_source(of, *member->reader);
  }
  // Rows for so many pages, and one row more, of lengths that `length` gives.
  template <typename Length>
  void fill(std::uint64_t pages, Length length) {
    const std::uint64_t rows = pages * shape.page_rows() * shape.members() + 1;
    for (std::size_t i = 0; i < shape.members(); ++i) {
      std::vector<Bytes> of;
      for (Row row = 0; row < rows; ++row) of.push_back(pattern(length(i, row), i * 1000003 + row));
      add(std::move(of));
    }
  }
  void fill_fixed(std::uint64_t pages) {
    fill(pages, [&](std::size_t, Row) { return shape.format.record_length; });
  }

  std::vector<RowSource*> sources() const {
    std::vector<RowSource*> out;
    for (const auto& member : members) out.push_back(member->source.get());
    return out;
  }
  PackedRows stretch(std::size_t member, std::uint64_t page) const {
    PackedRows out;
    for (std::uint64_t i = 0; i < shape.page_rows(); ++i) {
      const Bytes& row = members[member]->rows[shape.row_of(member, page * shape.page_rows() + i)];
      out.bytes = joined(out.bytes, row);
      out.lengths.push_back(static_cast<std::uint32_t>(row.size()));
    }
    return out;
  }
  // A page as docs/FORMAT.md has it, made the plain way.
  Bytes plain_page(std::uint64_t page) const {
    Bytes header, rows;
    for (std::uint64_t i = 0; i < shape.page_rows(); ++i) {
      Bytes combined;
      std::uint32_t all = 0;
      for (std::size_t m = 0; m < members.size(); ++m) {
        const Bytes& row = members[m]->rows[shape.row_of(m, page * shape.page_rows() + i)];
        all ^= static_cast<std::uint32_t>(row.size());
        combined.resize(std::max(combined.size(), row.size()));
        for (std::size_t k = 0; k < row.size(); ++k) combined[k] ^= row[k];
      }
      const std::uint32_t lengths[] = {all, static_cast<std::uint32_t>(combined.size())};
      const auto bytes = std::as_bytes(std::span(lengths));
      header = joined(header, {bytes.begin(), bytes.end()});
      rows = joined(rows, combined);
    }
    return shape.format.is_fixed() ? rows : joined(header, rows);
  }

  void write(std::uint64_t first, std::uint64_t count) { must(write_pages(shape, parity, first, count, sources())); }
  Code read_code(std::uint64_t page) { return code_of(read_page(shape, parity, page)); }
  std::vector<std::string> damages(std::uint64_t pages, std::span<RowSource* const> of) {
    std::vector<std::string> lines;
    must(check_parity(shape, parity, pages, of, lines));
    return lines;
  }
  Bytes stored(const std::string& suffix) {
    auto file = must(storage->open(path + suffix, OpenMode::kRead));
    Bytes bytes(must(file->size()));
    CHECK(must(file->read(0, bytes)) == bytes.size());
    return bytes;
  }
  static std::string member_path(std::size_t member) { return stem("/lfs" + std::to_string(member), FileId(12)); }

  struct Member {
    std::vector<Bytes> rows;
    Files files;
    std::unique_ptr<Reader> reader;
    std::unique_ptr<RowSource> source;
  };

  std::shared_ptr<MemoryDisk> disk = MemoryDisk::make();
  std::unique_ptr<Storage> storage = make_memory_storage(disk);
  ParityShape shape;
  std::string path = stem("/parity", FileId(12));
  std::vector<std::unique_ptr<Member>> members;
  ParityFiles parity;
};

}  // namespace pif::component::test
