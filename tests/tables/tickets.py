"""Generated help-desk tickets for the tests of tables and free text.

Each ticket has one to three topics. For each topic one sentence is drawn, with a device and a place, and neutral
sentences are added. Languages are drawn per ticket. Priority, hours and other columns depend weakly on the topics, so
the text is the main signal.
"""

import numpy as np
import pandas as pd

TOPICS = {
    "printer": [
        "the printer on the {place} floor is out of toner",
        "paper is jammed in the {device} printer again",
        "prints come out striped, please clean the drum",
        "el papel se atasca en la impresora {device}",
        "falta tóner en la impresora de la planta {place}",
        "打印机{place}楼卡纸了请处理",
        "打印机没有墨粉了需要更换",
    ],
    "login": [
        "I cannot log in, the password has expired",
        "my account is locked after three attempts",
        "please reset my password for {device}",
        "no puedo entrar, la contraseña ha caducado",
        "mi cuenta está bloqueada desde esta mañana",
        "无法登录密码过期了",
        "账户被锁定请重置密码",
    ],
    "network": [
        "no wifi in the {place} meeting room",
        "the vpn drops every few minutes",
        "internet is very slow since yesterday",
        "no hay wifi en la sala {place}",
        "la vpn se corta cada pocos minutos",
        "会议室{place}没有无线网络",
        "网络从昨天开始很慢",
    ],
    "billing": [
        "invoice {place} was charged twice",
        "please refund the wrong amount on my bill",
        "the tax number on the invoice is wrong",
        "la factura {place} se cobró dos veces",
        "por favor devuelvan el importe equivocado",
        "发票{place}被重复收费",
        "请退还账单上错误的金额",
    ],
    "hardware": [
        "my {device} makes a loud noise and gets hot",
        "the screen of the {device} flickers",
        "the battery of the {device} lasts ten minutes",
        "la pantalla del {device} parpadea",
        "la batería del {device} dura diez minutos",
        "{device}的屏幕一直闪烁",
        "{device}的电池只能用十分钟",
    ],
}
FILLERS = {
    "en": ["good morning", "thanks in advance", "this is urgent for our team", "it worked last week", "best regards"],
    "es": ["buenos días", "gracias de antemano", "es urgente para el equipo", "un saludo", "ayer funcionaba"],
    "zh": ["早上好", "非常感谢", "我们很着急", "上周还可以用", "此致敬礼"],
}
DEVICES = ["laptop", "monitor", "tablet", "scanner", "phone"]


def tickets(n, seed, gaps=0.05):
    """Return a frame with columns of every kind, and the topics of each row."""
    rng = np.random.default_rng(seed)
    topics = list(TOPICS)
    rows, labels = [], []
    for i in range(n):
        own = [topics[k] for k in rng.choice(5, size=rng.choice([1, 1, 1, 2, 2, 3]), replace=False)]
        language = str(rng.choice(["en", "es", "zh"], p=[0.5, 0.3, 0.2]))
        sentences = [_sentence(topic, language, rng) for topic in own]
        sentences += [str(word) for word in rng.choice(FILLERS[language], size=rng.integers(1, 3), replace=False)]
        rng.shuffle(sentences)
        gap = rng.random(5) < gaps
        rows.append(
            {
                "ticket": f"T-{i + 10_000 * seed:06}",
                "text": None if gap[0] else (". " if language != "zh" else "。").join(sentences),
                "priority": None if gap[1] else str(rng.choice(["low", "normal", "high"])),
                "hours": None if gap[2] else round(float(rng.gamma(2, 3 + 9 * ("hardware" in own))), 1),
                "returning": None if gap[3] else bool(rng.random() < 0.3 + 0.4 * ("billing" in own)),
                "opened": None if gap[4] else pd.Timestamp("2024-01-01") + pd.Timedelta(hours=int(rng.integers(8000))),
            }
        )
        labels.append(sorted(own))
    return pd.DataFrame(rows), labels


def _sentence(topic, language, rng):
    first = {"en": 0, "es": 3, "zh": 5}[language]
    last = {"en": 3, "es": 5, "zh": 7}[language]
    sentence = TOPICS[topic][int(rng.integers(first, last))]
    return sentence.format(place=int(rng.integers(1, 400)), device=str(rng.choice(DEVICES)))
