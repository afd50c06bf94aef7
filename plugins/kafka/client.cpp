// SPDX-License-Identifier: Apache-2.0
#include "kafka/client.hpp"

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <thread>

#include "kafka/admin.hpp"

namespace driftd::kafka {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBatch = 200;         // topics in one DescribeConfigs
constexpr milliseconds kFirstTry{1000};     // of rd_kafka_metadata before a broker has ever answered

using Queue = std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)>;

/// What Kafka accepts as a topic's name; the library asks for all topics where it is given another.
bool legal(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 249 && std::all_of(name.begin(), name.end(), plain);
}

Metadata read_metadata(const rd_kafka_metadata_t& from) {
  Metadata out;
  for (int b = 0; b < from.broker_cnt; ++b) out.brokers.push_back({from.brokers[b].id, from.brokers[b].host, from.brokers[b].port});
  for (int t = 0; t < from.topic_cnt; ++t) {
    const auto& given = from.topics[t];
    Topic topic{given.topic, outcome_of(given.err), {}};
    for (int p = 0; p < given.partition_cnt; ++p) {
      const auto& part = given.partitions[p];
      topic.partitions.push_back({part.id, part.leader, {part.replicas, part.replicas + part.replica_cnt},
                                  {part.isrs, part.isrs + part.isr_cnt}});
    }
    out.topics.push_back(std::move(topic));
  }
  return out;
}

/// rd_kafka_metadata blocks and knows no cancel, so it runs aside; the thread owns what it uses and never calls the host.
struct Question {
  explicit Question(std::shared_ptr<Handle> handle) : handle(std::move(handle)) {}
  ~Question() {
    if (answer != nullptr) rd_kafka_metadata_destroy(answer);
  }
  void ask(const std::string& name, int most_ms) {
    rd_kafka_topic_t* topic = name.empty() ? nullptr : rd_kafka_topic_new(handle->get(), name.c_str(), nullptr);
    const rd_kafka_metadata_t* got = nullptr;
    const auto result = rd_kafka_metadata(handle->get(), name.empty() ? 1 : 0, topic, &got, most_ms);
    if (topic != nullptr) rd_kafka_topic_destroy(topic);
    const std::lock_guard lock(mutex);
    error = result;
    answer = got;
    done = true;
    ended.notify_all();
  }

  std::shared_ptr<Handle> handle;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_metadata_t* answer = nullptr;
};

}  // namespace

std::shared_ptr<const rd_kafka_metadata_t> Client::request(sdk::Call& call, const std::string& topic, const Wait& wait,
                                                         milliseconds most) const {
  call.permit("requests");
  auto question = std::make_shared<Question>(handle_);
  const int limit = static_cast<int>(std::max<std::int64_t>(std::min(most, wait.left()).count(), 1));
  std::thread([question, topic, limit] { question->ask(topic, limit); }).detach();
  std::unique_lock lock(question->mutex);
  while (!question->done) {
    lock.unlock();
    const auto slice = wait.slice(*handle_);
    lock.lock();
    question->ended.wait_for(lock, slice, [&] { return question->done; });
  }
  const auto error = question->error;
  if (error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT) return nullptr;
  const Outcome outcome = outcome_of(error);
  if (!outcome.ok()) throw sdk::Failure(outcome.code, "asking for metadata: " + outcome.text);
  handle_->answered();
  return {question, question->answer};
}

void Client::connect(sdk::Call& call, milliseconds most) const {
  if (handle_->has_answered()) return;
  const Wait wait(call, most, DRIFTD_UNAVAILABLE, "connecting to " + settings_.bootstrap.front());
  for (milliseconds one = kFirstTry; request(call, name_of_nothing(), wait, one) == nullptr; one *= 2) wait.slice(*handle_);
}

Metadata Client::metadata(sdk::Call& call) const {
  const Wait wait(call, settings_.call, DRIFTD_DEADLINE, "asking for the topics");
  std::shared_ptr<const rd_kafka_metadata_t> got;
  while ((got = request(call, "", wait, settings_.call)) == nullptr) wait.slice(*handle_);
  Metadata out = read_metadata(*got);
  char* cluster = rd_kafka_clusterid(handle_->get(), 0);  // told with the answer above
  if (cluster != nullptr) out.cluster_id = cluster;
  rd_kafka_mem_free(handle_->get(), cluster);
  return out;
}

Client::Identity Client::identity(sdk::Call& call, milliseconds most) const {
  const Wait wait(call, most, DRIFTD_UNAVAILABLE, "asking " + settings_.bootstrap.front());
  std::shared_ptr<const rd_kafka_metadata_t> got;
  while ((got = request(call, name_of_nothing(), wait, most)) == nullptr) wait.slice(*handle_);
  Identity out{{}, got->broker_cnt};
  char* cluster = rd_kafka_clusterid(handle_->get(), 0);
  if (cluster != nullptr) out.cluster_id = cluster;
  rd_kafka_mem_free(handle_->get(), cluster);
  return out;
}

Presence Client::ask(sdk::Call& call, const std::vector<std::string>& names) const {
  Presence out;
  for (const auto& name : names) {
    if (!legal(name)) {
      out[name] = {DRIFTD_NOT_FOUND, "a name that no topic can have"};
      continue;
    }
    const Wait wait(call, settings_.call, DRIFTD_DEADLINE, "asking for topic " + name);
    std::shared_ptr<const rd_kafka_metadata_t> got;
    while ((got = request(call, name, wait, settings_.call)) == nullptr) wait.slice(*handle_);
    out[name] = {DRIFTD_CORRUPT, "the answer does not name the topic"};
    for (const auto& topic : read_metadata(*got).topics) {
      if (topic.name == name) out[name] = topic.outcome;
    }
  }
  return out;
}

Client::Event Client::admin(sdk::Call& call, rd_kafka_admin_op_t op, const std::string& doing, const Send& send) const {
  call.permit("requests");
  const Wait wait(call, settings_.call, DRIFTD_DEADLINE, doing);
  const Queue queue(rd_kafka_queue_new(handle_->get()), &rd_kafka_queue_destroy);
  const Options options(*handle_, op, settings_.call);
  send(options.get(), queue.get());
  for (;;) {
    const auto slice = wait.slice(*handle_);
    rd_kafka_event_t* event = rd_kafka_queue_poll(queue.get(), static_cast<int>(slice.count()));
    if (event == nullptr) continue;
    const Event out(event, &rd_kafka_event_destroy);
    const auto error = rd_kafka_event_error(event);
    if (error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT) {
      throw sdk::Failure(error == RD_KAFKA_RESP_ERR__TRANSPORT ? DRIFTD_UNAVAILABLE : DRIFTD_DEADLINE,
                         doing + ": " + outcome_of(error, rd_kafka_event_error_string(event)).text);
    }
    handle_->answered();
    return out;
  }
}

std::vector<Configs> Client::topic_batch(sdk::Call& call, const std::vector<std::string>& names) const {
  const Resources wanted(RD_KAFKA_RESOURCE_TOPIC, names);
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "asking for the configuration of topics",
                            [&](auto* options, auto* queue) {
                              rd_kafka_DescribeConfigs(handle_->get(), wanted.get(), wanted.size(), options, queue);
                            });
  const Outcome whole = outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()));
  std::map<std::string, Configs> found;
  if (whole.ok()) found = read_configs(*rd_kafka_event_DescribeConfigs_result(event.get()));
  std::vector<Configs> out;
  for (const auto& name : names) {
    const auto at = found.find(name);
    const Outcome none = whole.ok() ? Outcome{DRIFTD_CORRUPT, "the answer leaves this topic out"} : whole;
    out.push_back(at == found.end() ? Configs{name, none, {}} : std::move(at->second));
  }
  return out;
}

std::vector<Configs> Client::topic_configs(sdk::Call& call, const std::vector<std::string>& names) const {
  std::vector<Configs> out;
  for (std::size_t from = 0; from < names.size(); from += kBatch) {
    const auto to = std::min(names.size(), from + kBatch);
    auto batch = topic_batch(call, {names.begin() + static_cast<std::ptrdiff_t>(from), names.begin() + static_cast<std::ptrdiff_t>(to)});
    std::move(batch.begin(), batch.end(), std::back_inserter(out));
  }
  return out;
}

std::vector<Configs> Client::broker_configs(sdk::Call& call, const std::vector<std::int32_t>& ids) const {
  std::vector<Configs> out;
  for (const auto id : ids) {
    const std::string name = std::to_string(id);
    const Resources wanted(RD_KAFKA_RESOURCE_BROKER, {name});
    Configs one{name, {}, {}};
    try {
      const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "asking for the configuration of broker " + name,
                                [&](auto* options, auto* queue) {
                                  rd_kafka_DescribeConfigs(handle_->get(), wanted.get(), wanted.size(), options, queue);
                                });
      one.outcome = outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()));
      if (one.outcome.ok()) {
        auto found = read_configs(*rd_kafka_event_DescribeConfigs_result(event.get()));
        if (found.count(name) > 0) one = std::move(found[name]);
        else one.outcome = {DRIFTD_CORRUPT, "the answer leaves this broker out"};
      }
    } catch (const sdk::Failure& failure) {  // one broker that is gone must not hide the others
      if (failure.code != DRIFTD_UNAVAILABLE) throw;
      one.outcome = {failure.code, failure.what()};
    }
    out.push_back(std::move(one));
  }
  return out;
}

Acls Client::acls(sdk::Call& call) const {
  const AclFilter any;
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBEACLS, "asking for the ACLs", [&](auto* options, auto* queue) {
    rd_kafka_DescribeAcls(handle_->get(), any.get(), options, queue);
  });
  const auto error = rd_kafka_event_error(event.get());
  Acls out;
  out.open = error == RD_KAFKA_RESP_ERR_SECURITY_DISABLED;
  if (out.open) return out;
  out.outcome = outcome_of(error, rd_kafka_event_error_string(event.get()));
  if (out.outcome.ok()) out.bindings = read_acls(*rd_kafka_event_DescribeAcls_result(event.get()));
  return out;
}

Groups Client::groups(sdk::Call& call) const {
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, "asking for the consumer groups",
                            [&](auto* options, auto* queue) { rd_kafka_ListConsumerGroups(handle_->get(), options, queue); });
  Groups out{outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get())), {}};
  if (out.outcome.ok()) out = read_groups(*rd_kafka_event_ListConsumerGroups_result(event.get()));
  return out;
}

#if RD_KAFKA_VERSION >= 0x020300ff
bool has_topic_ids() { return true; }

std::map<std::string, std::string> Client::topic_ids(sdk::Call& call, const std::vector<std::string>& names) const {
  std::map<std::string, std::string> out;
  for (std::size_t from = 0; from < names.size(); from += kBatch) {
    std::vector<const char*> some;
    for (std::size_t i = from; i < std::min(names.size(), from + kBatch); ++i) some.push_back(names[i].c_str());
    const std::unique_ptr<rd_kafka_TopicCollection_t, decltype(&rd_kafka_TopicCollection_destroy)> wanted(
        rd_kafka_TopicCollection_of_topic_names(some.data(), some.size()), &rd_kafka_TopicCollection_destroy);
    const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, "asking for the ids of topics",
                              [&](auto* options, auto* queue) {
                                rd_kafka_DescribeTopics(handle_->get(), wanted.get(), options, queue);
                              });
    if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    out.merge(read_topic_ids(*rd_kafka_event_DescribeTopics_result(event.get())));
  }
  return out;
}
#else
bool has_topic_ids() { return false; }
std::map<std::string, std::string> Client::topic_ids(sdk::Call&, const std::vector<std::string>&) const { return {}; }
#endif

#if RD_KAFKA_VERSION >= 0x020200ff
bool has_scram_users() { return true; }

ScramUsers Client::scram_users(sdk::Call& call) const {
  const Event event = admin(call, RD_KAFKA_ADMIN_OP_DESCRIBEUSERSCRAMCREDENTIALS, "asking for the SCRAM users",
                            [&](auto* options, auto* queue) {
                              rd_kafka_DescribeUserScramCredentials(handle_->get(), nullptr, 0, options, queue);
                            });
  ScramUsers out{outcome_of(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get())), {}};
  if (out.outcome.ok()) out = read_scram_users(*rd_kafka_event_DescribeUserScramCredentials_result(event.get()));
  return out;
}
#else
bool has_scram_users() { return false; }
ScramUsers Client::scram_users(sdk::Call&) const {
  return {{DRIFTD_UNSUPPORTED, "this build's librdkafka is older than 2.2"}, {}};
}
#endif

}  // namespace driftd::kafka
