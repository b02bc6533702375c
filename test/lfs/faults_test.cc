// Each call of disk and catalogue fails once during each operation: it is done, or an error says that the disk failed;
// and after a start it can be done, everything else is as it was, and nothing is damaged.
#include "appender.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

// Two committed files, one of fixed and one of variable records, and a node that has forgotten all it had in memory.
const std::string kFixed = pattern(13030, 1);
const std::vector<std::string> kRows = {pattern(3000, 1), "", pattern(9000, 2)};
constexpr std::uint64_t kNew = 20;  // a file that is not there

TestFile fixed(std::uint64_t id) {
  TestFile file;
  file.id = id;
  return file;
}

struct Operation {
  const char* what;
  std::function<Status(Peer&, Node&)> run;
  std::function<bool(Peer&)> done = {};  // whether it is; nothing: it changes nothing that can be seen
};

Status expect(const Result<std::string>& got, const std::string& wanted) {
  if (!got) return fail(got.error());
  return *got == wanted ? Status() : fail(Code::kInternal, "other bytes than were written");
}

Status ask(Peer& peer, std::uint64_t file, std::uint32_t rights, const std::function<void(proto::Envelope&)>& fill) {
  auto packet = peer.request(file, rights);
  fill(packet.envelope);
  PIF_TRY(peer.call(std::move(packet)));
  return {};
}

Status append(Peer& peer, Node& node, const TestFile& file, const std::string& record) {
  Appender appender(peer.self(), {&node}, file);
  PIF_TRY_VALUE(const auto grant, appender.reserve(1, record.size()));
  const auto body = file.format.is_fixed() ? record : variable_body({record});
  PIF_TRY(appender.rows(0, grant, grant.start().records(), 1, body));
  return appender.done(grant);
}

Status fill_up(Peer& peer, Node& node, const std::string& bytes) {
  Appender appender(peer.self(), {&node}, fixed(7));
  PIF_TRY_VALUE(const auto grant, appender.reserve(0, bytes.size(), true));
  const auto within = static_cast<std::uint32_t>(grant.start().bytes() % 100);
  if (within == 0) return {};  // is full: the first time it was done after all
  PIF_TRY(appender.rows(0, grant, grant.start().bytes() / 100, 1, bytes, within));
  return appender.done(grant);
}

Status write_and_seal(Peer& peer, const TestFile& file, const std::vector<std::string>& rows) {
  std::string bytes;
  for (const auto& row : rows) bytes += row;
  const auto written = peer.write(file, 0, rows.size(), file.format.is_fixed() ? bytes : variable_body(rows));
  if (!written && written.error().code != Code::kExists) return written;  // kExists: sealed the first time
  PIF_TRY(peer.seal(file, rows.size(), bytes.size()));
  return {};
}

// A part of the new file by message, the rest and the seal through descriptors.
Status write_by_descriptor(Peer& peer, Node& node) {
  const auto file = fixed(kNew);
  PIF_TRY(peer.write(file, 0, 1, kFixed.substr(0, 100)));
  PIF_TRY_VALUE(auto reply, peer.attach_new(file));
  const auto storage = component::make_memory_storage(node.disk);
  PIF_TRY_VALUE(auto files, component::adopt(*storage, file.format, std::move(reply.handles)));
  PIF_TRY_VALUE(const auto size, files.data->size());
  return size == 100 ? Status() : fail(Code::kInternal, "what was written is not in the files");
}

bool reads(Peer& peer, std::uint64_t file, std::uint64_t first, const std::string& wanted) {
  return expect(peer.read(file, first, 1), wanted).has_value();
}

const std::vector<Operation> kOperations = {
    {"read", [](Peer& p, Node&) { return expect(p.read(7, 0, 1000), kFixed); }},
    {"read at a stride",
     [](Peer& p, Node&) { return expect(p.read(7, 1, 2, 100), kFixed.substr(100, 100) + kFixed.substr(10100, 100)); }},
    {"read variable records", [](Peer& p, Node&) { return expect(p.read(8, 0, 3), variable_body(kRows)); }},
    {"read variable records at a stride",
     [](Peer& p, Node&) {
       return expect(p.read(8, 0, 2, 2), variable_body({kRows[0], kRows[2]}));
     }},
    {"read bytes",
     [](Peer& p, Node&) {
       return ask(p, 8, kMayRead, [](auto& e) {
         e.mutable_read_bytes()->set_file(8);
         e.mutable_read_bytes()->set_bytes(5000);
       });
     }},
    {"offsets",
     [](Peer& p, Node&) {
       return ask(p, 8, kMayRead, [](auto& e) {
         e.mutable_offsets()->set_file(8);
         e.mutable_offsets()->add_rows(2);
       });
     }},
    {"length", [](Peer& p, Node&) { return ask(p, 8, kMayRead, [](auto& e) { e.mutable_length()->set_file(8); }); }},
    {"attach",
     [](Peer& p, Node&) -> Status {
       PIF_TRY(p.attach(8));
       return {};
     }},
    {"attach what is open for writing",
     [](Peer& p, Node&) -> Status {
       PIF_TRY(p.overwrite(7, 5, 1, pattern(100, 9)));
       PIF_TRY(p.attach(7));
       return {};
     }},
    {"overwrite", [](Peer& p, Node&) { return p.overwrite(7, 5, 1, pattern(100, 9)); },
     [](Peer& p) { return reads(p, 7, 5, pattern(100, 9)); }},
    {"overwrite the end", [](Peer& p, Node&) { return p.overwrite(7, 130, 1, pattern(30, 9)); },
     [](Peer& p) { return reads(p, 7, 130, pattern(30, 9)); }},
    {"overwrite over chunks", [](Peer& p, Node&) { return p.overwrite(7, 39, 50, pattern(5000, 9)); },
     [](Peer& p) { return reads(p, 7, 40, pattern(5000, 9).substr(100, 100)); }},
    {"overwrite variable records",
     [](Peer& p, Node&) { return p.overwrite(8, 0, 1, variable_body({pattern(3000, 9)})); },
     [](Peer& p) { return reads(p, 8, 0, variable_body({pattern(3000, 9)})); }},
    {"overwrite and flush",
     [](Peer& p, Node&) -> Status {
       PIF_TRY(p.overwrite(7, 130, 1, pattern(30, 9)));
       return p.flush();
     },
     [](Peer& p) { return reads(p, 7, 130, pattern(30, 9)); }},
    {"append", [](Peer& p, Node& n) { return append(p, n, variable(8), "appended"); },
     [](Peer& p) { return reads(p, 8, 3, variable_body({"appended"})); }},
    {"fill up the last record", [](Peer& p, Node& n) { return fill_up(p, n, pattern(70, 9)); },
     [](Peer& p) { return reads(p, 7, 130, kFixed.substr(13000) + pattern(70, 9)); }},
    {"append to a file without records", [](Peer& p, Node& n) { return append(p, n, fixed(kNew), pattern(100, 9)); },
     [](Peer& p) { return reads(p, kNew, 0, pattern(100, 9)); }},
    {"write and seal",
     [](Peer& p, Node&) {
       return write_and_seal(p, fixed(kNew), {pattern(100, 3), pattern(100, 4)});
     },
     [](Peer& p) { return reads(p, kNew, 1, pattern(100, 4)); }},
    {"write and seal variable records",
     [](Peer& p, Node&) {
       return write_and_seal(p, variable(kNew), {"one", "", pattern(5000, 4)});
     },
     [](Peer& p) { return reads(p, kNew, 2, variable_body({pattern(5000, 4)})); }},
    {"write, then through descriptors", write_by_descriptor},
    {"remove", [](Peer& p, Node&) { return p.settle({}, {8}); },
     [](Peer& p) { return code_of(p.read(8, 0, 1)) != Code::kOk; }},
    {"list",
     [](Peer& p, Node&) { return ask(p, 0, kMayManage, [](auto& e) { e.mutable_list_components()->set_limit(9); }); }},
};

// The operation with the call-th call failing. Returns whether there was one.
bool fails_at(const Operation& operation, std::uint64_t call) {
  bool failed = false;
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(fixed(7), kFixed));
    REQUIRE_OK(peer.put_variable(variable(8), kRows));
    node.crash();
    node.start();
    CHECK(code_of(peer.read(9, 0, 1)) == Code::kNotFound);  // it serves
    node.disk->set_fault([&](std::string_view what, std::string_view path) { return node.faults->ask(what, path); });
    node.faults->fail_at(call, sim::Fault::kIoError, false);
    const auto code = code_of(operation.run(peer, node));
    failed = node.faults->has_failed();
    INFO(operation.what << ", call " << call << ": " << node.faults->failed_call());
    CHECK((code == Code::kOk || (failed && code == Code::kIo)));
    node.faults->heal();
    node.disk->set_fault({});
    if (code == Code::kOk && operation.done) CHECK(operation.done(peer));
    node.crash();
    CHECK(node.check().value().damages.empty());
    node.start();
    if (code != Code::kOk) CHECK(code_of(operation.run(peer, node)) == Code::kOk);
    if (operation.done) CHECK(operation.done(peer));
    CHECK(reads(peer, 7, 100, kFixed.substr(10000, 100)));
  });
  return failed;
}

}  // namespace

TEST_CASE("whichever call fails in an operation, it is done or says that the disk failed, and a start mends the rest") {
  for (const auto& operation : kOperations) {
    std::uint64_t call = 0;
    while (fails_at(operation, call)) ++call;
    CHECK(call > 0);
  }
}
