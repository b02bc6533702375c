// What comes in messages and catalogue values, checked and turned into the types the rest works with.
#include "node.h"

#include "../../lfs/src/context/lfs_context.h"
#include "../../lfs/src/store/catalogue.h"
#include "../../lfs/src/store/convert.h"
#include "pif/base/limits.h"
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"

using namespace pif;
using namespace pif::lfs;
using namespace pif::lfs::test;

namespace {

Code shape_code(const std::function<void(proto::ComponentShape&)>& change) {
  auto shape = TestFile{}.shape();
  change(shape);
  return code_of(shape_of(shape));
}

FileId file_named(const std::string& name) {
  FileId file;
  return parse_file_name(name, file) ? file : FileId(0);
}

Code version_code(std::optional<std::string> stored) {
  const auto store = kv::open_memory(kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size())));
  if (stored) {
    auto transaction = store->write().value();
    REQUIRE_OK(transaction->put(1, "format", *stored));
    REQUIRE_OK(transaction->commit());
  }
  return code_of(catalogue::check_version(*store));
}

// What the catalogue says of file 7 when this is its value.
Code entry_code(const std::string& stored) {
  const auto store = kv::open_memory(kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size())));
  auto transaction = store->write().value();
  REQUIRE_OK(transaction->put(0, kv::key_u64(7), stored));
  REQUIRE_OK(transaction->commit());
  transaction.reset();
  return code_of(catalogue::get(*store, FileId(7)));
}

std::string stored_of(std::uint64_t file) {
  TestFile out;
  out.id = file;
  proto::StoredComponent stored;
  *stored.mutable_state()->mutable_shape() = out.shape();
  return kv::seal_value(stored.SerializeAsString());
}

std::vector<std::byte> body_with(const std::vector<std::uint32_t>& lengths, std::size_t data) {
  std::vector<std::byte> body(lengths.size() * 4 + data);
  if (!lengths.empty()) std::memcpy(body.data(), lengths.data(), lengths.size() * 4);
  return body;
}

}  // namespace

TEST_CASE("a shape is taken only if a component can have it") {
  CHECK(shape_code([](auto&) {}) == Code::kOk);
  CHECK(shape_code([](auto& s) { s.set_chunk_bytes(0); }) == Code::kOk);  // as these records have
  CHECK(shape_code([](auto& s) { s.set_chunk_bytes(s.chunk_bytes() + 1); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.set_file(0); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.set_index(1); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.mutable_format()->set_kind(0); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.mutable_format()->set_kind(4); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.mutable_format()->set_delimiter(256); }) == Code::kInvalid);
  CHECK(shape_code([](auto& s) { s.mutable_format()->set_record_length(0); }) == Code::kInvalid);
}

TEST_CASE("the names of a component's files tell its id, other names none") {
  for (const char* suffix : {".dat", ".sum", ".idx", ".isum", ".par", ".psum", ".pap"})
    CHECK(file_named(std::string("000000000000001f") + suffix).value == 0x1f);
  for (const char* other : {"1f", ".dat", "1f.tmp", "1g.dat", "x.dat", "11111111111111111.dat", "-1.sum"})
    CHECK(file_named(other).value == 0);
}

TEST_CASE("the short last record of a file makes its LFS's component shorter, and no other") {
  const auto layout = parity::Layout::make(3, {}).value();
  const FileLength file_length{7, 650};  // records 0, 3 and 6 on LFS 0; 6 has 50 bytes
  CHECK(fixed_component_bytes(layout, LfsIndex(0), 100, 3, file_length) == 250);
  CHECK(fixed_component_bytes(layout, LfsIndex(0), 100, 2, file_length) == 200);
  CHECK(fixed_component_bytes(layout, LfsIndex(1), 100, 2, file_length) == 200);
  CHECK(fixed_component_bytes(layout, LfsIndex(0), 100, 0, file_length) == 0);
  CHECK(fixed_component_bytes(layout, LfsIndex(0), 100, 2, FileLength{}) == 200);
}

TEST_CASE("a body of variable rows must be as long as its lengths say") {
  CHECK(code_of(parse_variable(body_with({3, 0, 5}, 8), 3)) == Code::kOk);
  CHECK(code_of(parse_variable({}, 0)) == Code::kOk);
  CHECK(code_of(parse_variable(body_with({3}, 0), 2)) == Code::kInvalid);
  CHECK(code_of(parse_variable(body_with({3, 5}, 9), 2)) == Code::kInvalid);
  CHECK(code_of(parse_variable(body_with({kRecordLengthMax + 1}, 0), 1)) == Code::kTooLarge);
}

TEST_CASE("a body of fixed rows may be short in its last row only, but not empty there") {
  CHECK(last_row_bytes(300, 3, 100).value() == 100);
  CHECK(last_row_bytes(201, 3, 100).value() == 1);
  CHECK(code_of(last_row_bytes(200, 3, 100)) == Code::kInvalid);
  CHECK(code_of(last_row_bytes(301, 3, 100)) == Code::kInvalid);
  CHECK(code_of(last_row_bytes(0, 0, 100)) == Code::kInvalid);
  CHECK(code_of(last_row_bytes(UINT64_MAX, kBodyBytesMax + 1, 100)) == Code::kInvalid);
}

TEST_CASE(
    "a catalogue whose format is newer, or cannot be read, is refused; so is one that is empty, or of the release "
    "before") {
  CHECK(version_code(std::nullopt) == Code::kCorrupt);
  CHECK(version_code(kv::seal_value(kv::key_u64(kFormatBefore))) == Code::kVersion);
  CHECK(version_code(kv::seal_value(kv::key_u64(kFormatBefore + 1))) == Code::kOk);
  CHECK(version_code(kv::seal_value(kv::key_u64(kRootFormat))) == Code::kOk);
  CHECK(version_code(kv::seal_value(kv::key_u64(kRootFormat + 1))) == Code::kVersion);
  CHECK(version_code(kv::seal_value(kv::key_u64(0))) == Code::kCorrupt);
  CHECK(version_code(kv::seal_value("one")) == Code::kCorrupt);
  CHECK(version_code("rotten") == Code::kCorrupt);
}

TEST_CASE("a value of the catalogue that is no message, or of another file, is damaged") {
  CHECK(entry_code(stored_of(7)) == Code::kOk);
  CHECK(entry_code(stored_of(8)) == Code::kCorrupt);
  CHECK(entry_code(kv::seal_value("\xff\xff")) == Code::kCorrupt);
}
