// The table of operations: one with messages.proto and docs/PROTOCOL.md, and what is made of it.
#include "pif/wire/operations.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "pif/wire/bindings.h"
#include "pif/wire/convert.h"

using namespace pif;
using namespace pif::wire;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(PIF_SOURCE_DIR "/" + path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  REQUIRE_FALSE(text.empty());
  return text;
}

struct Field {
  std::string type;
  std::string name;
  int number = 0;
};

// What an Envelope may bring, as messages.proto says.
std::vector<Field> fields_of_envelope() {
  const std::string text = text_of("proto/messages.proto");
  const std::size_t begin = text.find("oneof op {");
  REQUIRE(begin != std::string::npos);
  const std::string block = text.substr(begin, text.find("\n  }", begin) - begin);
  static const std::regex kField(R"(\n\s*(\w+) (\w+) = (\d+);)");
  std::vector<Field> fields;
  for (std::sregex_iterator at(block.begin(), block.end(), kField), end; at != end; ++at)
    fields.push_back({(*at)[1], (*at)[2], std::stoi((*at)[3])});
  return fields;
}

std::string words(Right right) {
  switch (right) {
    case Right::kNone: return "";
    case Right::kAnybody: return "anybody";
    case Right::kSession: return "session";
    case Right::kOwner: return "owner";
    case Right::kUser: return "user";
    case Right::kWorker: return "worker";
    case Right::kRead: return "read";
    case Right::kWrite: return "write";
    case Right::kCreate: return "create";
    case Right::kReadOrCreate: return "read or create";
    case Right::kWriteOrCreate: return "write or create";
    case Right::kManage: return "manage";
  }
  return "?";
}

std::string words(Again again) {
  return again == Again::kIdempotent ? "idempotent" : again == Again::kDeduplicated ? "deduplicated" : "once";
}

std::string row_of(const Operation& operation) {
  const std::string reply = operation.reply_name.empty() ? "" : "`" + std::string(operation.reply_name) + "`";
  std::string row = "|";
  for (const std::string& cell : {"`" + std::string(operation.name) + "`", reply, words(operation.at_server),
                                  words(operation.at_lfs), words(operation.again)})
    row += " " + cell + (cell.empty() ? "|" : " |");
  return row;
}

// The lines of docs/PROTOCOL.md "Operations" that name an operation.
std::set<std::string> documented_rows() {
  const std::string text = text_of("docs/PROTOCOL.md");
  const std::size_t begin = text.find("| request | reply | at the server | at an LFS | asked again |");
  REQUIRE(begin != std::string::npos);
  std::set<std::string> rows;
  for (std::size_t at = text.find("\n| `", begin); at != std::string::npos; at = text.find("\n| `", at + 1)) {
    const std::size_t end = text.find('\n', at + 1);
    rows.insert(text.substr(at + 1, end - at - 1));
    if (text.compare(end, 4, "\n| `") != 0) break;
  }
  return rows;
}

}  // namespace

TEST_CASE("every message of the envelope is in the table, as a request or as what answers one") {
  const auto fields = fields_of_envelope();
  REQUIRE(fields.size() > kOperations.size());
  std::size_t requests = 0;
  for (const Field& field : fields) {
    INFO(field.type << " " << field.name << " = " << field.number);
    const Operation* operation = find_operation(field.number);
    CHECK((operation != nullptr) != is_reply_case(field.number));
    if (operation == nullptr) continue;
    ++requests;
    CHECK(operation->name == field.type);
    CHECK(operation->label == field.name);
  }
  CHECK(requests == kOperations.size());
}

TEST_CASE("numbers that no message has are neither requests nor replies") {
  for (const int number : {-1, 0, 9, 12, 13, 119, 191, 192, 1 << 20}) {
    CHECK(find_operation(number) == nullptr);
    CHECK_FALSE(is_reply_case(number));
  }
}

TEST_CASE("docs/PROTOCOL.md has the rows of the table, and no others") {
  const auto documented = documented_rows();
  for (const Operation& operation : kOperations) {
    INFO("missing in docs/PROTOCOL.md \"Operations\":\n" << row_of(operation));
    CHECK(documented.count(row_of(operation)) == 1);
  }
  CHECK(documented.size() == kOperations.size());
}

TEST_CASE("an operation that changes nothing twice is not asked for without an answer") {
  for (const Operation& operation : kOperations) {
    INFO(operation.name);
    CHECK((operation.reply != proto::Envelope::OP_NOT_SET || operation.again == Again::kOnce));
  }
}

TEST_CASE("request and reply of an operation get into an envelope and out of it by type") {
  proto::Envelope envelope;
  OperationOf<proto::Read>::add_request(envelope).set_file(7);
  CHECK(envelope.op_case() == OperationOf<proto::Read>::kCase);
  CHECK(OperationOf<proto::Read>::request(envelope).file() == 7);
  ReplyTo<proto::Read>& reply = OperationOf<proto::Read>::add_reply(envelope);
  reply.set_rows(3);
  CHECK(envelope.op_case() == OperationOf<proto::Read>::kRow.reply);
  CHECK(OperationOf<proto::Read>::reply(envelope).rows() == 3);
  CHECK(std::is_same_v<ReplyTo<proto::Write>, proto::Done>);
  CHECK_FALSE(Request<proto::ReadReply>);
}

TEST_CASE("what a capability must give is for the file of the request, wherever the request names it") {
  const auto is = [](const NeededRights& needed, std::uint64_t file, std::uint32_t rights) {
    return needed.file == FileId(file) && needed.rights == rights;
  };
  proto::Read read;
  read.set_file(7);
  CHECK(is(needed_rights(read), 7, kMayRead));
  proto::Write write;
  write.mutable_shape()->set_file(8);
  CHECK(is(needed_rights(write), 8, kMayCreate));
  proto::Seal seal;  // its `file` is a length
  seal.mutable_shape()->set_file(9);
  CHECK(is(needed_rights(seal), 9, kMayCreate));
  proto::AppendRows rows;  // its shape is of the same file, which the handler checks
  rows.set_file(10);
  rows.mutable_shape()->set_file(11);
  CHECK(is(needed_rights(rows), 10, kMayWrite));
  proto::Attach attach;
  attach.set_file(12);
  CHECK(is(needed_rights(attach), 12, kMayRead));
  attach.mutable_create()->set_file(13);
  CHECK(is(needed_rights(attach), 13, kMayCreate));
  CHECK(is(needed_rights(proto::Settle()), 0, kMayManage));
  CHECK(needed_rights(proto::Hello()).rights == 0);
  CHECK(needed_rights(proto::Spawn()).rights == 0);
}

TEST_CASE("an operation that nobody has bound is found") {
  Bindings<Daemon::kServer, int> bindings;
  REQUIRE(bindings.first_missing() != nullptr);
  const auto bind_all_but_stat = [&]<typename R>(const R*) {
    constexpr bool is_servers = OperationOf<R>::kRow.at_server != Right::kNone;
    if constexpr (is_servers && !std::is_same_v<R, proto::Stat>) bindings.template bind<R>(1);
  };
#define BIND_ANSWERED(name, ...) bind_all_but_stat(static_cast<const proto::name*>(nullptr));
  PIF_OPERATIONS(BIND_ANSWERED, BIND_ANSWERED)
#undef BIND_ANSWERED
  REQUIRE(bindings.first_missing() != nullptr);
  CHECK(bindings.first_missing()->name == "Stat");
  CHECK(bindings.find(proto::Envelope::kStat) == nullptr);
  bindings.bind<proto::Stat>(2);
  CHECK(bindings.first_missing() == nullptr);
  CHECK(*bindings.find(proto::Envelope::kStat) == 2);
  CHECK(bindings.find(proto::Envelope::kRead) == nullptr);
  for (const int number : {-1, 0, 192}) CHECK(bindings.find(number) == nullptr);
}
