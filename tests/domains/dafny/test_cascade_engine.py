"""A cascade's programs are sampled by the engine that was chosen, both roles."""

from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.domains.dafny.cascade import Cascade, Widths
from rlvr_exp.domains.dafny.options import ROLES
from rlvr_exp.domains.dafny.tasks import DafnyDomain, TwoStage
from rlvr_exp.inference.engine import Engine
from rlvr_exp.launch.inference_inputs import tasks_of_domain
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.engines.local import LocalEngine


class Counting(LocalEngine):
    """Counts the completions that it draws."""

    drawn = 0

    def draw(self, *given):
        for one in super().draw(*given):
            self.drawn += 1
            yield one


def test_both_roles_are_sampled_by_the_given_engine() -> None:
    model = Model(embedded="tiny_dafny", dtype="float32", chat_template="never", max_completion_tokens=112)
    stages = TwoStage(DafnyDomain(role="writer"), DafnyDomain(role="annotator"))
    asks = tasks_of_domain(stages.writer.splits()["test"][:2], stages.writer)
    roles, engine = dict.fromkeys(ROLES, load_policy(model, 0)), Counting()
    solver = Engine(roles, Infer(verify=False), model, None, stages.writer, 0, engine, Cascade(stages, Widths()))
    assert len(list(solver.solve_all(asks))) == 2
    assert 2 < engine.drawn <= 4
