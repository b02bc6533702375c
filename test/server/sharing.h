// What programs that write a file together say to the server, in short.
#pragma once

#include <fmt/format.h>

#include "server/fixture.h"

namespace pif::server::testing {

inline Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }

inline Envelope share_request(std::uint64_t file, const std::vector<std::uint64_t>& incarnations = {7, 8, 9, 10}) {
  Envelope request;
  request.mutable_share()->set_file(file);
  for (const std::uint64_t one : incarnations) request.mutable_share()->add_incarnations(one);
  return request;
}
inline Envelope join_request(const std::string& token) {
  Envelope request;
  request.mutable_join()->set_token(token);
  return request;
}
inline Envelope done_request(std::uint64_t file, std::uint64_t records) {
  Envelope request;
  request.mutable_member_done()->set_file(file);
  request.mutable_member_done()->mutable_file_length()->set_records(records);
  request.mutable_member_done()->mutable_file_length()->set_bytes(records * 100);
  return request;
}
inline Envelope members_request(std::uint64_t file, std::uint32_t from = 0) {
  Envelope request;
  request.mutable_members()->set_file(file);
  request.mutable_members()->set_from(from);
  return request;
}
inline Envelope drop_request(std::uint64_t file, std::uint32_t member) {
  Envelope request;
  request.mutable_drop_member()->set_file(file);
  request.mutable_drop_member()->set_member(member);
  return request;
}

inline std::string share(Client& client, std::uint64_t file) {
  const auto reply = client.ask(share_request(file));
  REQUIRE(reply);
  return reply->share_reply().token();
}
inline proto::JoinReply join(Client& client, const std::string& token) {
  const auto reply = client.ask(join_request(token));
  REQUIRE(reply);
  return reply->join_reply();
}
inline Code done(Client& client, std::uint64_t file, std::uint64_t records = 10) {
  return code_of(client.ask(done_request(file, records)));
}
inline Code commit(Client& client, std::uint64_t file, std::uint64_t records = 10) {
  return code_of(client.ask(Client::commit_request(file, records)));
}
// "writing, done 10, dropped, gone", by number.
inline std::string members(Client& client, std::uint64_t file) {
  const auto reply = client.ask(members_request(file));
  if (!reply) return reply.error().text;
  std::string all;
  for (const auto& one : reply->members_reply().members()) {
    constexpr const char* kNames[] = {"?", "writing", "done", "dropped", "gone"};
    if (!all.empty()) all += ", ";
    all += one.state() < std::size(kNames) ? kNames[one.state()] : "?";
    if (one.has_file_length()) all += fmt::format(" {}", one.file_length().records());
  }
  return all;
}

// A file that `first` creates and shares, and `second` has joined.
struct SharedScene {
  SharedScene() { join(second, token); }
  World world;
  Client first{world};
  Client second{world};
  std::uint64_t file = first.create("/f")->file();
  std::string token = share(first, file);
};

}  // namespace pif::server::testing
