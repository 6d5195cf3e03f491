// A ros2_control hardware plugin that simulates a robot with a frozen world, in place of the real one.
//
// In the URDF, <hardware> has <plugin>featherlane_ros2/FeatherlaneSystem</plugin>, <param name="file">robot.flz</param>
// and, optionally, <param name="hash">...</param>.  Each <joint> has the name of a hinge or slide joint, and of the
// actuator that its command interface drives, in the frozen model.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "featherlane.h"
#include "hardware_interface/system_interface.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace featherlane_ros2 {
using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

class FeatherlaneSystem : public hardware_interface::SystemInterface {
 public:
  CallbackReturn on_init(const hardware_interface::HardwareInfo &info) override {
    if (hardware_interface::SystemInterface::on_init(info) != CallbackReturn::SUCCESS) return CallbackReturn::ERROR;
    const auto &given = info.hardware_parameters;
    const auto file = given.find("file"), hash = given.find("hash");
    if (file == given.end()) return CallbackReturn::ERROR;
    world_.reset(fl_open(file->second.c_str(), hash == given.end() ? nullptr : hash->second.c_str(), nullptr, 0));
    fl_field qposadr, dofadr, timestep;
    if (!world_ || !fl_find_constant(world_.get(), "jnt_qposadr", &qposadr) ||
        !fl_find_constant(world_.get(), "jnt_dofadr", &dofadr) ||
        !fl_find_constant(world_.get(), "opt_timestep", &timestep))
      return CallbackReturn::ERROR;
    timestep_ = *static_cast<double *>(timestep.values);
    for (const auto &joint : info.joints) {
      const int id = fl_id(world_.get(), "joint", joint.name.c_str());
      const int actuator = fl_id(world_.get(), "actuator", joint.name.c_str());
      if (id < 0 || actuator < 0) return CallbackReturn::ERROR;
      double *position = fl_reals(world_.get(), "qpos") + static_cast<int32_t *>(qposadr.values)[id];
      double *velocity = fl_reals(world_.get(), "qvel") + static_cast<int32_t *>(dofadr.values)[id];
      joints_.push_back({position, velocity, fl_reals(world_.get(), "ctrl") + actuator, 0.0, 0.0, 0.0});
    }
    return CallbackReturn::SUCCESS;
  }

  std::vector<hardware_interface::StateInterface> export_state_interfaces() override {
    std::vector<hardware_interface::StateInterface> out;
    for (size_t i = 0; i < joints_.size(); i++) {
      out.emplace_back(info_.joints[i].name, "position", &joints_[i].shown_position);
      out.emplace_back(info_.joints[i].name, "velocity", &joints_[i].shown_velocity);
    }
    return out;
  }

  std::vector<hardware_interface::CommandInterface> export_command_interfaces() override {
    std::vector<hardware_interface::CommandInterface> out;
    for (size_t i = 0; i < joints_.size(); i++) {
      const auto &listed = info_.joints[i].command_interfaces;
      out.emplace_back(info_.joints[i].name, listed.empty() ? "effort" : listed[0].name, &joints_[i].command);
    }
    return out;
  }

  return_type read(const rclcpp::Time &, const rclcpp::Duration &) override {
    for (auto &j : joints_) j.shown_position = *j.position, j.shown_velocity = *j.velocity;
    return return_type::OK;
  }

  // Steps the world by the time of a control period; real-time safe.
  return_type write(const rclcpp::Time &, const rclcpp::Duration &period) override {
    for (auto &j : joints_) *j.ctrl = j.command;
    left_ += period.seconds();
    const auto steps = static_cast<int64_t>(std::floor(left_ / timestep_ + 1e-6));
    left_ -= static_cast<double>(steps) * timestep_;
    if (steps > 0 && fl_step(world_.get(), steps) & FL_NON_FINITE) return return_type::ERROR;
    return return_type::OK;
  }

 private:
  struct Joint {
    double *position, *velocity, *ctrl;  // memory of the world
    double shown_position, shown_velocity, command;
  };
  struct Close {
    void operator()(fl_world *w) const { fl_close(w); }
  };
  std::unique_ptr<fl_world, Close> world_;
  std::vector<Joint> joints_;
  double timestep_ = 0.0, left_ = 0.0;  // [s]
};
}  // namespace featherlane_ros2

PLUGINLIB_EXPORT_CLASS(featherlane_ros2::FeatherlaneSystem, hardware_interface::SystemInterface)
